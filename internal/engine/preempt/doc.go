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
// of cycles. Order the workloads by it, winners first. Whoever has others evicted is
// promised their room, and has nobody evicted while he is. A promise ends with his
// admission, or is taken by one before him: it outlives a victim whose admission was
// withdrawn and written all the same, who then goes for that promise. So the first is
// evicted by nobody and loses no promise; each other one loses what he has, or was
// promised, only to those before him, and to each of these at most once a promise: with
// finitely many promises to those before him, he is made finitely many himself. The
// potential is the number of promises that each workload may still be made, read from the
// first to the last: every eviction lowers it.
//
// News end promises, too: of queues, quotas and nodes, of a write that failed, and of a
// victim who was withdrawn, has his quota all the same and stays since nobody waits for it
// any more. So does that all have gone whom somebody waited for, and that was not enough.
// Each begins the count anew for those concerned. Of the last two, which decisions bring
// about, the property tests alone show that they come to an end.
package preempt
