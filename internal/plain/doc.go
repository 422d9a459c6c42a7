// Package plain makes text that users wrote safe to print. A name, a message or an error may hold characters that a
// terminal obeys rather than shows: escape sequences, the bell, a change of the writing direction, line breaks that
// look like another line of output. Everything that Muster prints or writes into conditions, messages and events passes
// through here once.
package plain
