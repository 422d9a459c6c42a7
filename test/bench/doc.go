// Package bench measures Muster's performance on the embedded control plane: make bench prints the figures beside what they
// must reach, and docs/performance.md has a table of them. Its tests need the build tag bench, because figures depend on
// what else runs on the machine.
package bench
