// Package fair measures how much of a cohort one of its members uses beyond its own quota: the dominant resource
// share, divided by a weight. It also ages the recent usage of LocalQueues.
//
// Only the engine and its preemption call it. It knows trees of quota, but no workloads and no clock. Shares are
// exact: they are kept as fractions and compared in integers wide enough for every product.
package fair
