// Package rendezvous serves the agents in training pods: it tells each when its round
// begins, with which part, and when it is over. Its decisions are those of its packages
// round (jobs whose pods carry the label muster.dev/rendezvous) and attempt (JobSets that
// restart in place); it adds the connections, the proof of who asks, and what the
// operator's cache says of pods and JobSets.
//
// The operator's wiring calls it. It knows no queue and no quota, and the one thing that
// it writes is the attempt of a pod of a JobSet, as an annotation.
package rendezvous
