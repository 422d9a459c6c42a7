package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// preempted returns a scene with a queue of 4 cpu in which low ran and was evicted for high.
func preempted(t *testing.T) *scene {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 4, 1, 0, 0))
	s.want("the preemptor arrives", s.happens(job("high", "q", 3, 1, 1, 1)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
	return s
}

func TestPreemptorIsAdmittedOnceItsVictimIsGone(t *testing.T) {
	s := preempted(t)
	s.want("the victim's pods still run", s.happens())
	s.want("the victim's pods are gone", s.happens(s.stopped("low")), "admit high in q", "low waits: WaitingForQuota")
	s.want("the preemptor has ended", s.happens(gone("high")), "admit low in q")
}

func TestPromisedCapacityIsNotGivenToOthers(t *testing.T) {
	s := preempted(t)
	s.want("a workload arrives that would fit instead", s.happens(job("thief", "q", 2, 1, 0, 2)), "thief waits: WaitingForQuota")
	s.want("a workload arrives that fits beside the promise", s.happens(job("beside", "q", 1, 1, 0, 3)), "beside waits: WaitingForPreemptedWorkloads")
	s.want("the quota is released", s.happens(s.stopped("low")), "admit high in q", "admit beside in q", "low waits: WaitingForQuota")
}

func TestPromiseIsBrokenWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		event        func(s *scene) Event
		want, follow []string // follow: what is decided once the victim is gone
	}{
		"the preemptor is gone": {
			func(*scene) Event { return gone("high") },
			nil, []string{"admit low in q"}},
		"the preemptor is deactivated": {
			func(s *scene) Event { return s.changed("high", func(w *Workload) { w.Inactive = true }) },
			[]string{"high waits: Deactivated"}, []string{"admit low in q"}},
		"the preemptor requests something else": {
			func(s *scene) Event {
				return s.changed("high", func(w *Workload) { w.PodSets[0].Count, w.Generation = 5, 2 })
			},
			[]string{"high waits: ExceedsMaxQuota"}, []string{"admit low in q"}},
		"a workload of higher priority needs the quota": {
			func(*scene) Event { return job("higher", "q", 4, 1, 2, 2) },
			[]string{"higher waits: WaitingForPreemptedWorkloads", "high waits: WaitingForQuota"}, []string{"admit higher in q", "low waits: WaitingForQuota"}},
		"the queue is stopped": {
			func(*scene) Event { return stoppedQueue(evicting(queueOf("q", "", 4), lower)) },
			[]string{"high waits: OnHold"}, []string{"low waits: OnHold"}},
		"the quota is cut": {
			func(*scene) Event { return evicting(queueOf("q", "", 2), lower) },
			[]string{"high waits: ExceedsMaxQuota"}, []string{"low waits: ExceedsMaxQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := preempted(t)
			s.want("the event", s.happens(tc.event(s)), tc.want...)
			s.want("the victim's pods are gone", s.happens(s.stopped("low")), tc.follow...)
		})
	}
}

func TestPreemptorIsAdmittedEarlierIfCapacityBecomesFree(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 2, 1, 0, 0), job("other", "q", 2, 1, 5, 0))
	s.want("the preemptor arrives", s.happens(job("high", "q", 2, 1, 1, 1)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
	s.want("another workload ends first", s.happens(gone("other")), "admit high in q")
}

// TestWaitingWorkloadEvictsOneWhosePriorityFalls, in its own queue or in one that borrows.
func TestWaitingWorkloadEvictsOneWhosePriorityFalls(t *testing.T) {
	for queue, cause := range map[string]string{"q": "in queue", "p": "reclaimed"} {
		t.Run(cause, func(t *testing.T) {
			q := evicting(queueOf("q", "lab", 4), preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.LowerPriority})
			s := newScene(t, Options{}, q, queueOf("p", "lab", 0), localOf("q"), localOf("p"), job("runs", queue, 4, 1, 5, 0))
			s.want("another arrives", s.happens(job("waits", "q", 4, 1, 1, 1)), "waits waits: WaitingForQuota")
			s.want("the priority of the first falls", s.happens(s.changed("runs", func(w *Workload) { w.Priority = 0 })),
				"evict runs for waits: "+cause, "waits waits: WaitingForPreemptedWorkloads")
		})
	}
}

// TestQueueThatBorrowsFromTheRootEvictsNone of its own workloads, unless it may preempt while borrowing: quota of a cohort
// below the root counts as its own.
func TestQueueThatBorrowsFromTheRootEvictsNone(t *testing.T) {
	evicts := []string{"evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads"}
	for name, tc := range map[string]struct {
		root, team, own int64
		want            []string
	}{
		"the quota is the queue's":                   {0, 0, 4, evicts},
		"the quota is that of a cohort below a root": {0, 4, 0, evicts},
		"the quota is that of the root":              {4, 0, 0, []string{"high waits: WaitingForQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, cohortOf("root", "", tc.root), cohortOf("team", "root", tc.team),
				evicting(queueOf("q", "team", tc.own), lower), localOf("q"), job("low", "q", 4, 1, 0, 0))
			s.want("the preemptor arrives", s.happens(job("high", "q", 2, 1, 1, 1)), tc.want...)
		})
	}
}

func TestEvictionNamesThePreemptorAndPaths(t *testing.T) {
	s := newScene(t, Options{}, CohortSet{Cohort{Name: "team", Parent: "lab"}},
		evicting(queueOf("q", "team", 2), preempt.Policy{Reclaim: preempt.Any}), queueOf("p", "lab", 2), localOf("q"), localOf("p"),
		job("borrower", "p", 1, 2, 0, 0), job("borrower2", "p", 1, 2, 0, 1))
	s.engine.Apply(job("owner", "q", 1, 2, 0, 2))
	var got *Eviction
	for _, d := range decideAll(s.engine, epoch) {
		if d.Evict != nil {
			got = d.Evict
		}
	}
	want := &Eviction{Preemptor: Key{Namespace: "ns", Name: "owner"}, PreemptorUID: "owner-uid", Cause: preempt.Reclaimed,
		PreemptorPath: "/lab/team/q", Path: "/lab/p"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("eviction (-want +got):\n%s", diff)
	}
}

// TestEvictionIsRetriedIfNotWritten: after the write of an eviction failed, the eviction is decided again.
func TestEvictionIsRetriedIfNotWritten(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 4, 1, 0, 0))
	low := s.jobs["low"]
	s.engine.Apply(job("high", "q", 4, 1, 1, 1))
	if got := decideAll(s.engine, epoch); len(got) == 0 || got[0].Evict == nil {
		t.Fatalf("got decisions %+v, want an eviction", got)
	}
	s.engine.Apply(Failed{Key: low.Key, UID: low.UID})
	s.jobs["high"] = job("high", "q", 4, 1, 1, 1)
	s.want("the write fails", s.happens(), "evict low for high: in queue")
	s.want("the victim's pods are gone", s.happens(s.stopped("low")), "admit high in q", "low waits: WaitingForQuota")
}

func TestReasonThatChangedBackIsReportedAgain(t *testing.T) {
	s := preempted(t)
	observed := func() Event { return s.changed("second", func(*Workload) {}) }
	s.want("a second workload arrives", s.happens(job("second", "q", 2, 1, 0, 2)), "second waits: WaitingForQuota")
	s.want("the event of its reason arrives", s.happens(observed()))
	s.want("the first is gone", s.happens(gone("high")), "second waits: WaitingForPreemptedWorkloads")
	s.want("a third workload arrives before the next event", s.happens(job("higher", "q", 4, 1, 2, 3)), "higher waits: WaitingForPreemptedWorkloads")
	s.want("the event of the earlier reason arrives", s.happens(observed()), "second waits: WaitingForQuota")
	s.want("the event of the later reason arrives", s.happens(observed()))
}

// TestPromiseThatNeedsNoEvictionIsKeptAtOnce: quota that is free and was only promised to a workload of lower priority,
// which needs more, is given at once.
func TestPromiseThatNeedsNoEvictionIsKeptAtOnce(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 2, 1, 0, 0))
	s.want("a workload that needs everything arrives", s.happens(job("mid", "q", 4, 1, 1, 1)), "evict low for mid: in queue", "mid waits: WaitingForPreemptedWorkloads")
	s.want("a workload that needs what is free arrives", s.happens(job("high", "q", 2, 1, 2, 2)), "admit high in q", "mid waits: WaitingForQuota")
}

// TestEvictionOrderIsTheSameAfterARestart: the API server does not record which of two reservations within a second was
// first, so that the engine must not use it.
func TestEvictionOrderIsTheSameAfterARestart(t *testing.T) {
	queue := evicting(queueOf("q", "", 4), lower)
	s := newScene(t, Options{}, queue, localOf("q"))
	s.happens(job("b", "q", 2, 1, 0, 0))
	s.now = s.now.Add(700 * time.Millisecond)
	s.happens(job("a", "q", 2, 1, 0, 1))
	fresh := New(Options{})
	for _, ev := range []Event{defaultFlavor, queue, localOf("q")} {
		fresh.Apply(ev)
	}
	for _, name := range []string{"a", "b"} {
		w := s.jobs[name]
		w.ReservedAt = w.ReservedAt.Truncate(time.Second) // as the API server stores it
		fresh.Apply(w)
	}
	high := job("high", "q", 2, 1, 1, 2)
	fresh.Apply(high)
	s.engine.Apply(high)
	var live, again string
	for order, e := range map[*string]*Engine{&live: s.engine, &again: fresh} {
		for _, d := range decideAll(e, s.now) {
			if d.Evict != nil {
				*order += d.Key.Name
			}
		}
	}
	if live != again || len(live) != 1 {
		t.Errorf("victim = %q, after a restart %q, want the same one", live, again)
	}
}

// TestPromiseIsKeptOnceAdmittedPodsAreReady: a workload with a promise waits for ready pods as others do, and is
// admitted once they are ready.
func TestPromiseIsKeptOnceAdmittedPodsAreReady(t *testing.T) {
	for name, tc := range map[string]struct {
		block        Block
		waits, after []string
	}{
		"of the same queue": {BlockQueue, []string{"high waits: WaitingForPodsReady", "low waits: WaitingForPodsReady"}, []string{"admit high in q"}},
		"of all queues": {BlockAll, []string{"low waits: WaitingForPodsReady", "high waits: WaitingForPodsReady"},
			[]string{"admit high in q", "low waits: WaitingForQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{BlockUntilReady: tc.block}, evicting(queueOf("q", "", 4), lower), localOf("q"))
			ready := func(name string) Event { return s.changed(name, func(w *Workload) { w.Ready = true }) }
			s.happens(job("low", "q", 2, 1, 0, 0))
			s.happens(ready("low"))
			s.happens(job("other", "q", 2, 1, 5, 0))
			s.happens(ready("other"))
			s.want("the preemptor arrives", s.happens(job("high", "q", 2, 1, 1, 1)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
			s.want("a pod of another workload fails, then the victim's pods are gone", s.happens(s.changed("other", func(w *Workload) { w.Ready = false }), s.stopped("low")), tc.waits...)
			s.want("the pod is ready again", s.happens(ready("other")), tc.after...)
		})
	}
}

// TestNoEvictionsInTurnsWhileAnAdmissionIsWritten: one of two victims is just being admitted, too late to be withdrawn.
// If the preemptor lost its promise for that, the other victim would be admitted first, as its LocalQueue used less,
// and would then be withdrawn too late in its turn, and so on without end.
func TestNoEvictionsInTurnsWhileAnAdmissionIsWritten(t *testing.T) {
	q := evicting(queueOf("q", "", 4), lower)
	q.ByUsage = true
	greedy := LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "greedy"}, ClusterQueue: "q",
		Consumed: fair.Consumption{"cpu": 1000}, ConsumedAt: epoch}}
	s := newScene(t, Options{AdmissionFairSharing: &AdmissionFairSharing{HalfLife: time.Hour, Interval: time.Hour}}, q, localOf("q"), greedy,
		job("first", "q", 2, 1, 0, 0))
	s.engine.Apply(job("second", "q", 2, 1, 0, 1))
	s.jobs["second"] = job("second", "q", 2, 1, 0, 1)
	admission := decideAll(s.engine, s.now)
	s.want("the preemptor arrives while the second is being admitted", s.happens(job("large", "greedy", 4, 1, 1, 2)),
		"evict first for large: in queue", "withdraw second", "large waits: WaitingForPreemptedWorkloads")
	s.write(admission[0])
	s.want("the first is gone, and the admission of the second was written", s.happens(s.stopped("first")),
		"evict second for large: in queue", "first waits: WaitingForQuota")
	s.want("the second is gone too", s.happens(s.stopped("second")), "admit large in q", "second waits: WaitingForQuota")
}

// TestReasonIsThatOfVictimsAgainOnceNoPodsAreUnready: the reason of a preemptor changes while pods are not ready, and
// back after that.
func TestReasonIsThatOfVictimsAgainOnceNoPodsAreUnready(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockQueue}, slices.Concat(onNodes, []Event{
		evicting(queueOf("q", "", 9), lower), localOf("q"), node("a1", "a", 4)})...)
	ready := func(name string, is bool) Event { return s.changed(name, func(w *Workload) { w.Ready = is }) }
	s.happens(job("low", "q", 2, 1, 0, 0))
	s.happens(ready("low", true))
	s.happens(job("other", "q", 2, 1, 5, 0))
	s.happens(ready("other", true))
	s.want("the preemptor arrives", s.happens(job("high", "q", 2, 1, 1, 1)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
	s.want("a pod of another workload fails, and a third workload arrives", s.happens(ready("other", false), job("third", "q", 1, 1, 0, 2)),
		"high waits: WaitingForPodsReady", "third waits: WaitingForPodsReady")
	s.want("the pod is ready again", s.happens(ready("other", true)), "high waits: WaitingForPreemptedWorkloads", "third waits: TopologyPlacementFailed")
	s.want("the victim's pods are gone", s.happens(s.stopped("low")), "admit high in q", "low waits: WaitingForPodsReady")
}

// TestPromisedPlacesAreInOneRackWhenGiven: places promised in one rack are given up if a node has moved to another
// rack.
func TestPromisedPlacesAreInOneRackWhenGiven(t *testing.T) {
	pods := func(name string, count int32, topology flavor.TopologyRequest) PodSet {
		return PodSet{Name: name, Count: count, PerPod: map[string]int64{"cpu": 2}, Topology: &topology}
	}
	inRack := flavor.TopologyRequest{Level: rack, Mandatory: true}
	grouped := flavor.TopologyRequest{Level: rack, Mandatory: true, Group: "g"}
	for name, podSets := range map[string][]PodSet{
		"a pod set":           {pods("main", 2, inRack)},
		"a leader and others": {pods("leader", 1, grouped), pods("workers", 1, grouped)},
		"a slice":             {pods("main", 2, flavor.TopologyRequest{Slices: []place.Slice{{Level: rack, Size: 2}}})},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 9), lower), localOf("q"),
				node("a1", "a", 2), node("a2", "a", 2), job("low", "q", 1, 2, 0, 0)})...)
			gang := job("gang", "q", 2, 2, 1, 1)
			gang.PodSets = podSets
			s.want("a gang arrives", s.happens(gang), "evict low for gang: in queue", "gang waits: WaitingForPreemptedWorkloads")
			s.want("a node moves to another rack", s.happens(node("a2", "b", 2)), "gang waits: ExceedsNodes")
			s.want("the victim's pods are gone", s.happens(s.stopped("low")), "admit low in q")
		})
	}
}

// TestPreemptorWhosePlacesAreLostLooksForOthers, also if that needs another victim.
func TestPreemptorWhosePlacesAreLostLooksForOthers(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 9), lower), localOf("q"), node("a1", "a", 2), node("b1", "b", 2),
		job("low1", "q", 1, 2, 0, 0), job("low2", "q", 1, 2, 0, 1)})...)
	s.want("the preemptor arrives", s.happens(job("high", "q", 1, 2, 1, 2)), "evict low1 for high: in queue", "high waits: WaitingForPreemptedWorkloads")
	on := s.places("low1")[0][:2]
	s.want("the node of the victim is cordoned", s.happens(cordoned(node(on, on[:1], 2))), "evict low2 for high: in queue")
	other := s.places("low2")[0][:2]
	s.want("so is the other", s.happens(cordoned(node(other, other[:1], 2))), "high waits: TopologyPlacementFailed")
}

// TestCapacityIsPromisedOnceAlthoughItsHolderStays: the preemptor is deleted before the withdrawn admission of its
// victim turns out to be written. That capacity was already promised to the first in order.
func TestCapacityIsPromisedOnceAlthoughItsHolderStays(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "lab", 4), lower), queueOf("r", "lab", 0), localOf("q"), localOf("r"), job("runs", "q", 2, 1, 0, 0))
	s.now = s.now.Add(time.Second)
	s.engine.Apply(job("starts", "q", 2, 1, 0, 1))
	s.jobs["starts"] = job("starts", "q", 2, 1, 0, 1)
	admission := decideAll(s.engine, s.now)
	s.want("two preemptors arrive", s.happens(job("first", "q", 2, 1, 1, 2), job("second", "q", 2, 1, 1, 3)),
		"withdraw starts", "evict runs for second: in queue", "first waits: WaitingForPreemptedWorkloads", "second waits: WaitingForPreemptedWorkloads")
	s.want("the first is deleted, and another preemptor arrives", s.happens(gone("first"), job("other", "r", 2, 1, 2, 4)), "other waits: WaitingForPreemptedWorkloads")
	s.write(admission[0])
	s.want("the withdrawn admission was written", s.happens(), "other waits: WaitingForQuota")
	s.want("the other victim's pods are gone", s.happens(s.stopped("runs")), "admit second in q", "runs waits: WaitingForQuota")
}

// TestReleasedCapacityIsNotSharedWithAVictimThatStays: the eviction of one of two victims was not written after what
// they would release had been promised.
func TestReleasedCapacityIsNotSharedWithAVictimThatStays(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "lab", 4), lower), queueOf("r", "lab", 0), localOf("q"), localOf("r"),
		job("stays", "q", 2, 1, 0, 0), job("leaves", "q", 2, 1, 0, 1))
	s.engine.Apply(job("high", "q", 3, 1, 1, 2))
	s.jobs["high"] = job("high", "q", 3, 1, 1, 2)
	for _, d := range decideAll(s.engine, s.now) {
		if d.Key.Name != "stays" {
			s.write(d)
		}
	}
	s.want("another workload arrives", s.happens(job("other", "r", 1, 1, 2, 3)), "other waits: WaitingForPreemptedWorkloads")
	s.engine.Apply(Failed{Key: Key{Namespace: "ns", Name: "stays"}, UID: "stays-uid"})
	s.want("an eviction was not written", s.happens(), "evict stays for high: in queue", "other waits: WaitingForPreemptedWorkloads")
	s.want("the pods of one victim are gone", s.happens(s.stopped("leaves")), "admit other in r", "leaves waits: WaitingForQuota")
	s.want("the pods of both victims are gone", s.happens(s.stopped("stays")), "admit high in q", "stays waits: WaitingForQuota")
}

// TestWithdrawnWorkloadIsEvictedForTheOneThatWaits: the preemptor lost its promise to another workload, and can no
// longer have it when the withdrawn admission turns out to be written.
func TestWithdrawnWorkloadIsEvictedForTheOneThatWaits(t *testing.T) {
	q := evicting(queueOf("q", "", 2), lower)
	q.Groups = append(q.Groups, flavor.Group{Resources: []string{"gpu"}, Flavors: []string{"default"}})
	q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "gpu"}] = quota.Limits{Nominal: 1, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	requests := func(w WorkloadSet, cpu, gpu int64) WorkloadSet {
		w.PodSets[0].PerPod = map[string]int64{"cpu": cpu, "gpu": gpu}
		return w
	}
	for name, tc := range map[string]struct {
		cpu  int64 // requested by the new owner of the promise, besides the gpu
		want []string
	}{
		"the new owner of the promise needs it":         {1, []string{"evict starts for higher: in queue"}},
		"the new owner of the promise does not need it": {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, q, localOf("q"), requests(job("runs", "q", 1, 0, 0, 0), 0, 1))
			s.engine.Apply(requests(job("starts", "q", 1, 0, 0, 1), 2, 0))
			s.jobs["starts"] = requests(job("starts", "q", 1, 0, 0, 1), 2, 0)
			admission := decideAll(s.engine, s.now)
			s.want("the preemptor arrives", s.happens(requests(job("high", "q", 1, 0, 1, 2), 2, 1)),
				"evict runs for high: in queue", "withdraw starts", "high waits: WaitingForPreemptedWorkloads")
			s.happens(requests(job("higher", "q", 1, 0, 2, 3), tc.cpu, 1))
			s.want("the preemptor is gated", s.happens(s.changed("high", func(w *Workload) { w.Gated = "a controller" })), "high waits: AdmissionGated")
			s.write(admission[0])
			s.want("the withdrawn admission was written", s.happens(), tc.want...)
		})
	}
}

// TestTheCauseOfALateEvictionIsThatOfTheOneThatWaits: a user reads it, and it may differ from that of the preemptor for
// which the admission was withdrawn.
func TestTheCauseOfALateEvictionIsThatOfTheOneThatWaits(t *testing.T) {
	house, policy := CohortSet{Cohort{Name: "house", Parent: "lab"}}, preempt.Policy{Reclaim: preempt.Any}
	owner, nearOwner := evicting(queueOf("owner", "house", 2), policy), evicting(queueOf("near", "house", 0), policy)
	borrower := func(name string) ClusterQueueSet {
		return evicting(queueOf(name, "lab", 0), preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.LowerPriority, WhileBorrowing: true})
	}
	inQueue, other := job("high", "q", 2, 1, 1, 1), job("high", "other", 2, 1, 1, 1)
	for name, tc := range map[string]struct {
		options   Options
		preemptor WorkloadSet
		waits     WorkloadSet
		want      string
	}{
		"the owner's, for one of the queue":                            {Options{}, inQueue, job("late", "owner", 2, 1, 0, 2), "reclaimed"},
		"the owner's, for one of the queue, with fair sharing":         {bothStrategies, inQueue, job("late", "owner", 2, 1, 0, 2), "reclaimed"},
		"the owner's, for one that borrows":                            {Options{}, other, job("late", "owner", 2, 1, 0, 2), "reclaimed"},
		"the queue's, for one of another queue":                        {Options{}, other, job("late", "q", 2, 1, 2, 2), "in queue"},
		"another queue's, for one of the queue":                        {Options{}, inQueue, job("late", "other", 2, 1, 2, 2), "while borrowing"},
		"a smaller one of another queue, for one of it, and by shares": {bothStrategies, inQueue, job("late", "other", 1, 1, 2, 2), "fair share"},
		"one of another queue in the cohort that owns it":              {Options{}, inQueue, job("late", "near", 2, 1, 2, 2), "reclaimed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.options, borrower("q"), localOf("q"), borrower("other"), localOf("other"), house, owner, localOf("owner"), nearOwner, localOf("near"))
			starts := job("starts", "q", 2, 1, 0, 0)
			s.engine.Apply(starts)
			s.jobs["starts"] = starts
			admission := decideAll(s.engine, s.now)[0]
			s.want("the preemptor arrives", s.happens(tc.preemptor), "withdraw starts", "high waits: WaitingForPreemptedWorkloads")
			s.want("another one takes over", s.happens(tc.waits), "late waits: WaitingForPreemptedWorkloads", "high waits: WaitingForQuota")
			s.write(admission)
			s.want("the withdrawn admission was written", s.happens(), "evict starts for late: "+tc.want)
		})
	}
}

// TestWithdrawnWorkloadIsNotEvictedAgainstTheRules: the rules by which an admission was withdrawn have changed when it
// turns out to be written. The preemptor was promised its capacity again, but may not evict it any more.
func TestWithdrawnWorkloadIsNotEvictedAgainstTheRules(t *testing.T) {
	owner := evicting(queueOf("owner", "lab", 2), preempt.Policy{Reclaim: preempt.Any})
	elsewhere := localOf("owner")
	elsewhere.ClusterQueue = "elsewhere"
	starting := func(t *testing.T, options Options) (s *scene, admission Decision) {
		s = newScene(t, options, queueOf("borrower", "lab", 0), localOf("borrower"), owner, localOf("owner"), queueOf("elsewhere", "lab", 0))
		s.engine.Apply(job("starts", "borrower", 2, 1, 0, 0))
		s.jobs["starts"] = job("starts", "borrower", 2, 1, 0, 0)
		admission = decideAll(s.engine, s.now)[0]
		return s, admission
	}
	rejected := []string{"high waits: WaitingForQuota"}
	for name, tc := range map[string]struct {
		options Options
		change  Event
		want    []string
	}{
		"nothing has changed":                             {Options{}, localOf("owner"), []string{"evict starts for high: reclaimed"}},
		"its queue is protected":                          {Options{}, protected(queueOf("borrower", "lab", 0)), rejected},
		"its queue is protected, with fair sharing":       {bothStrategies, protected(queueOf("borrower", "lab", 0)), rejected},
		"the preemptor's queue reclaims nothing":          {Options{}, queueOf("owner", "lab", 2), rejected},
		"the preemptor is in a queue without such rights": {Options{}, elsewhere, rejected},
	} {
		t.Run(name, func(t *testing.T) {
			s, admission := starting(t, tc.options)
			s.want("the owner of the quota arrives", s.happens(job("high", "owner", 2, 1, 1, 1)), "withdraw starts", "high waits: WaitingForPreemptedWorkloads")
			s.want("the change", s.happens(tc.change))
			s.write(admission)
			s.want("the withdrawn admission was written", s.happens(), tc.want...)
		})
	}
	t.Run("the preemptor is still to be moved to a queue without such rights", func(t *testing.T) {
		s, admission := starting(t, Options{})
		s.engine.budget = 1
		s.want("the owner of the quota arrives", s.happens(job("large", "owner", 3, 1, 0, 1), job("high", "owner", 2, 1, 1, 2)),
			"withdraw starts", "high waits: WaitingForPreemptedWorkloads", "large waits: ExceedsMaxQuota")
		s.write(admission)
		s.want("its LocalQueue points elsewhere, and the withdrawn admission was written", s.happens(elsewhere), "high waits: WaitingForQuota")
	})
}

// TestWithdrawnWorkloadShrinksIfThatIsEnough: an elastic job is just being admitted, too late to be withdrawn. Once that is
// written it can shrink, and is not evicted only to start again at its minimum.
func TestWithdrawnWorkloadShrinksIfThatIsEnough(t *testing.T) {
	for name, world := range map[string][]Event{
		"by quota": {evicting(queueOf("q", "", 5), lower)},
		"on nodes": slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 1000), lower), node("a1", "a", 3), node("a2", "a", 2)}),
	} {
		t.Run(name, func(t *testing.T) {
			for pods, want := range map[int32][]string{
				2: {"resize starts from 5 to 3 for high"},
				3: {"evict starts for high: in queue"},
			} {
				s := newScene(t, Options{}, append(world, localOf("q"))...)
				starts := between("starts", 3, 5, 0, 0)
				s.engine.Apply(starts)
				s.jobs["starts"] = starts
				admission := decideAll(s.engine, s.now)[0]
				s.want("the preemptor arrives", s.happens(job("high", "q", pods, 1, 1, 1)), "withdraw starts", "high waits: WaitingForPreemptedWorkloads")
				s.write(admission)
				s.want("the withdrawn admission was written", s.happens(), want...)
			}
		})
	}
}

// TestWithdrawnWorkloadStaysIfThereIsEnough: while the admission that was to be withdrawn is written, another job ends.
func TestWithdrawnWorkloadStaysIfThereIsEnough(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("ends", "q", 2, 1, 2, 0))
	starts := job("starts", "q", 2, 1, 0, 0)
	s.engine.Apply(starts)
	s.jobs["starts"] = starts
	admission := decideAll(s.engine, s.now)[0]
	s.want("the preemptor arrives", s.happens(job("high", "q", 2, 1, 1, 1)), "withdraw starts", "high waits: WaitingForPreemptedWorkloads")
	s.engine.Apply(gone("ends"))
	s.write(admission)
	s.want("the withdrawn admission was written", s.happens(), "admit high in q")
}
