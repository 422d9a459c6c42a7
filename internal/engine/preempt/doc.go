// Package preempt finds the workloads to evict, or to shrink, so that another one fits: of those that the rules of
// its queue let it evict, a set in which each one is necessary, chosen by least harm. With fair sharing the rules
// differ: workloads are evicted for a fairer share of the cohort, by one of the configured strategies. Search is the
// entry point, Preemptor its input, Victim its result; Explainer explains why a workload may not be evicted.
//
// Only the engine calls it. It tries changes on the engine's tree of quotas, and leaves the tree as it was.
//
// Evictions end while no workload is created or finishes. The rules alone do not ensure that: what a queue reclaims as
// its own quota, a borrower of higher priority may take again, and so on in turns. So a Precedence keeps the relation
// "was evicted for" free of cycles. Order the workloads by it, winners first. A workload for which others are evicted
// has their capacity nominated, and no others are evicted for it while it has the nomination. A nomination ends with
// the admission of its owner, or is taken over by a workload before it in the order: it outlives a victim whose
// admission was withdrawn but written all the same, which is then evicted for that nomination. So the first workload is
// never evicted and loses no nomination; each other one loses what it has, or has nominated, only to those before it,
// and to each of these at most once per nomination. As those before it are given finitely many nominations, it is given
// finitely many itself. The potential is the number of nominations that each workload may still be given, read from the
// first to the last: every eviction lowers it.
//
// Events end nominations as well: changes of queues, quotas and nodes, a failed write, and a withdrawn victim that
// holds its quota all the same and stays because no workload waits for it any more. So does the case that all awaited
// workloads are gone and that was not enough. Each restarts the count for the workloads concerned. The last two follow
// from decisions; that they come to an end is shown by the property tests only.
package preempt
