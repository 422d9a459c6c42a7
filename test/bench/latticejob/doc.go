// Package latticejob measures LatticeJobs that Muster runs itself, on the embedded control plane without nodes.
package latticejob
