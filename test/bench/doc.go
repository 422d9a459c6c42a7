// Package bench measures Muster's performance on the embedded control plane: make bench prints each figure with the
// limit that it must reach, and docs/develop/performance.md records them. Its tests need the build tag bench, because
// the figures depend on what else runs on the machine.
package bench
