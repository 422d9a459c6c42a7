// Package order defines which workload is served first: the highest priority, then the longest waiting, then by name
// so that the order is total. Queue keeps ranks in that order; Heap keeps members with an order of their own. The
// engine and its sub-packages use it. It must not know quota.
package order
