// Package whatif answers questions with an engine of its own, which knows the objects that the caller gives, as the
// operator's engine would. It is for those who ask, such as the command line: it writes nothing, and its decisions have
// no effect.
package whatif
