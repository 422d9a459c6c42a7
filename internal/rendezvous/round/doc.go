// Package round decides who is in a round of a job, when it begins and when it is over:
// a state machine that is told what happened and when, and has no clock, no lock and no
// connection of its own. The server asks it what to answer each agent.
//
// A round begins when every pod of the job has an agent that waits, or when enough do
// and the others have taken too long. It is over when a member is lost, fails or begins
// anew, or when pods that are not in it wait and there is room. An agent that cannot be
// heard is not lost: its command runs on. Nothing is stored: what an operator that was
// started anew has to know of a round, its members tell it. As it may hear none of them and
// count from 1 again, a round is told from others by its ID, and not by its number.
package round
