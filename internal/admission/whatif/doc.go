// Package whatif answers questions with an engine of its own, the what-if engine. This engine knows the objects that
// the caller gives, as the operator's engine would. The command line uses it to explain jobs: nothing is written, and
// decisions of this engine have no effect.
package whatif
