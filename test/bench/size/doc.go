// Package size measures operators on a cluster of 15,000 Workloads and 20,000 pods: what they hold in memory, what they use while
// nothing changes, and how soon another decides after the one that led was killed, or after all were.
package size
