// Package preempt finds whom to evict so that a workload fits: the smallest set, in
// the sense that nobody in it could stay, of those that the rules of its queue let it
// evict, the least harm first.
//
// Where shares are compared, the rules are others: somebody is evicted for a fairer share
// of the cohort, by one of the strategies that are configured.
//
// It is called by the engine only. It is given the tree of quotas to try things on,
// which it leaves as it was.
//
// Evictions end while nobody comes or goes. The rules alone do not see to that: what
// a queue reclaims by right of its own quota, a borrower of higher priority may take
// again, and so on in turns. So a Precedence keeps the relation "was evicted for" free
// of cycles. Order the workloads by it, winners first. The first is evicted by nobody;
// each other one only by those before it, and by each of these at most once an
// admission: with finitely many admissions of those before it, it has finitely many
// itself. The potential is the number of admissions that each workload may still have,
// read from the first to the last: every eviction lowers it.
package preempt
