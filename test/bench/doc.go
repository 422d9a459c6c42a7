// Package bench measures what Muster promises of itself, on the embedded control
// plane: make bench prints the figures beside what they must reach, and
// docs/performance.md keeps a table of them. Its tests need the build tag bench,
// because figures depend on what else the machine does.
package bench
