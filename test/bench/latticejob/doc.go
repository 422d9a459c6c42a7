// Package latticejob measures how fast LatticeJobs get their pods, on the embedded control plane without nodes. Its
// tests need the build tag bench.
package latticejob
