// Package fair measures how much of a cohort one of its members takes beyond its own:
// the dominant resource share, divided by a weight.
//
// It is called by the engine and its preemption only. It knows trees of quota, and
// neither workloads nor time. All of it is exact: shares are kept as fractions, and
// compared in integers wide enough to hold every product.
package fair
