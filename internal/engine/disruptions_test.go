package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// holds checks that the jobs still hold quota.
func (s *scene) holds(names ...string) {
	s.Helper()
	for _, name := range names {
		if s.engine.Holds(Key{Namespace: "ns", Name: name}) == nil {
			s.Errorf("%s holds no quota, want it to keep its admission", name)
		}
	}
}

func TestDeletedQueueKeepsAdmittedWorkloads(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "lab", 2), queueOf("p", "lab", 2), localOf("q"), localOf("p"), job("a", "q", 2, 1, 0, 0), job("own", "p", 2, 1, 0, 0))
	s.want("no quota", s.happens(job("b", "q", 2, 1, 0, 1), job("c", "p", 1, 1, 0, 1)), "c waits: WaitingForQuota", "b waits: WaitingForQuota")
	s.want("the queue is deleted", s.happens(ClusterQueueDeleted{"q"}), "b waits: Inadmissible")
	s.holds("a", "own")
	s.want("a workload arrives", s.happens(job("d", "q", 1, 1, 0, 2)), "d waits: Inadmissible")
	s.want("the queue is created again: admitted usage counts", s.happens(queueOf("q", "lab", 2)), "b waits: WaitingForQuota", "d waits: WaitingForQuota")
	s.want("the usage is released", s.happens(gone("a")), "admit b in q")
}

func TestQuotaBelowUsageNeitherEvictsNorAdmits(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("a", "q", 2, 1, 0, 0), job("b", "q", 2, 1, 0, 1))
	s.want("the quota is reduced", s.happens(queueOf("q", "", 1)))
	s.holds("a", "b")
	s.want("a workload arrives", s.happens(job("c", "q", 1, 1, 0, 2), job("nothing", "q", 3, 0, 0, 3)), "admit nothing in q", "c waits: WaitingForQuota")
	s.want("one workload ends", s.happens(gone("a")))
	s.want("both have ended", s.happens(gone("b")), "admit c in q")
}

// TestCohortThatBecomesACycleKeepsAdmittedWorkloads: admitted workloads keep their quota while the cohorts form a
// cycle, but its queues can borrow no more.
func TestCohortThatBecomesACycleKeepsAdmittedWorkloads(t *testing.T) {
	s := newScene(t, Options{}, CohortSet{Cohort{Name: "x"}}, queueOf("q", "x", 2), queueOf("p", "x", 2), queueOf("alone", "", 1),
		localOf("q"), localOf("alone"), job("a", "q", 3, 1, 0, 0))
	s.want("the cohorts form a cycle", s.happens(CohortSet{Cohort{Name: "x", Parent: "x"}}))
	s.holds("a")
	s.want("a workload arrives", s.happens(job("b", "q", 1, 1, 0, 1), job("c", "alone", 1, 1, 0, 1)), "admit c in alone", "b waits: Inadmissible")
	s.want("the cycle is gone", s.happens(CohortSet{Cohort{Name: "x"}}), "admit b in q")
	s.want("usage counts in the cohort again", s.happens(job("d", "q", 1, 1, 0, 2)), "d waits: WaitingForQuota")
}

func TestMissingFlavorDoesNotAffectOthers(t *testing.T) {
	q := queueOf("q", "", 0)
	q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"gone", "default"}}}
	q.Quotas = quota.Quotas{{Flavor: "gone", Resource: "cpu"}: {Nominal: 9}, {Flavor: "default", Resource: "cpu"}: {Nominal: 2}}
	s := newScene(t, Options{}, q, localOf("q"))
	s.want("a workload fits the other flavor", s.happens(job("a", "q", 2, 1, 0, 0)), "admit a in q")
	s.want("a workload does not fit the other flavor", s.happens(job("b", "q", 3, 1, 0, 1)), "b waits: ExceedsMaxQuota")
	s.want("the missing flavor is created", s.happens(FlavorSet{Flavor{Name: "gone"}}), "admit b in q")
	s.want("the flavor is deleted", s.happens(FlavorDeleted{"gone"}))
	s.holds("a", "b")
}

func TestGiganticAmounts(t *testing.T) {
	const gigantic = math.MaxInt64
	for name, tc := range map[string]struct {
		quota    int64
		requests Event
		want     []string
	}{
		"a pod that requests the largest amount":     {4, job("a", "q", 1, gigantic, 0, 0), []string{"a waits: ExceedsMaxQuota"}},
		"the largest number of such pods":            {4, job("a", "q", math.MaxInt32, gigantic, 0, 0), []string{"a waits: ExceedsMaxQuota"}},
		"a product that overflows":                   {4, job("a", "q", math.MaxInt32, gigantic/2, 0, 0), []string{"a waits: ExceedsMaxQuota"}},
		"a minimum below the largest number of pods": {4, smaller(job("a", "q", math.MaxInt32, 1, 0, 0), 1), []string{"admit a in q, 4 of 2147483647 main"}},
		"a quota of the largest amount":              {gigantic, job("a", "q", 2, gigantic, 0, 0), []string{"admit a in q"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "lab", tc.quota), queueOf("p", "lab", 0), localOf("q"), localOf("p"))
			s.want("the events", s.happens(tc.requests), tc.want...)
			s.happens(gone("a"))
			s.want("another workload arrives", s.happens(job("b", "q", 1, tc.quota, 0, 1)), "admit b in q")
			s.happens(gone("b"))
			if u, _ := s.engine.QueueUsage("q"); len(u.Reserved) != 0 {
				t.Errorf("reserved = %v after all workloads are gone, want none", u.Reserved)
			}
		})
	}
}

// TestAdmissionBeyondTheQuotaIsCounted: an admission of another writer counts as it is, even beyond the quota.
func TestAdmissionBeyondTheQuotaIsCounted(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"))
	foreign := job("a", "q", 1, 1, 0, 0)
	foreign.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "other", Count: 1,
		Flavors: map[string]string{"cpu": "default", "gpu": "unheard of"}, Usage: map[string]int64{"cpu": 9, "gpu": -3}}}}
	s.want("nothing to decide", s.happens(foreign))
	s.want("no quota", s.happens(job("b", "q", 1, 1, 0, 1)), "b waits: WaitingForQuota")
	s.want("the workload is gone", s.happens(gone("a")), "admit b in q")
}

// TestAdmissionOfAnUnknownPodSet, which the API server accepts from other controllers, takes its quota until it is evicted.
func TestAdmissionOfAnUnknownPodSet(t *testing.T) {
	odd := between("odd", 1, 2, 0, 0)
	odd.Admitted, odd.Admission = true, &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "unknown", Count: 2,
		Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": 2}, Places: []place.NodeCount{{Node: "a1", Count: 2}}}}}
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 2), lower), localOf("q"), node("a1", "a", 2), node("a2", "a", 2), odd})...)
	s.want("its pod starts and its node fails", s.happens(pod("odd", 0, "a1", 1), NodeDeleted{"a1"}))
	s.want("another arrives", s.happens(job("high", "q", 1, 1, 1, 1)), "evict odd for high: in queue", "high waits: WaitingForPreemptedWorkloads")
	s.want("its pods are gone", s.happens(gone("odd"), podGone("odd", 0)), "admit high in q")
}

// TestClockJumps: a jump of the clock affects the order of eviction by age, and nothing else.
func TestClockJumps(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("a", "q", 2, 1, 0, 0))
	for i, jump := range []time.Duration{-1000 * time.Hour, 1000000 * time.Hour, -time.Nanosecond} {
		s.now = s.now.Add(jump)
		b := job("b", "q", 2, 1, 0, i)
		b.UID = jump.String()
		s.want("after "+jump.String(), s.happens(b), "admit b in q")
		s.happens(gone("b"))
	}
	s.now = time.Time{}
	s.want("at the zero time", s.happens(job("c", "q", 4, 1, 1, 9)), "evict a for c: in queue", "c waits: WaitingForPreemptedWorkloads")
	s.want("the victim's pods are gone", s.happens(s.stopped("a")), "admit c in q", "a waits: WaitingForQuota")
}

// TestLocalQueueThatPointsElsewhere: waiting workloads move to the other ClusterQueue, and those that hold quota stay.
func TestLocalQueueThatPointsElsewhere(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 2), queueOf("p", "", 2), localOf("q"), job("a", "q", 2, 1, 0, 0))
	s.want("no quota", s.happens(job("b", "q", 2, 1, 0, 1)), "b waits: WaitingForQuota")
	s.want("the LocalQueue points elsewhere", s.happens(LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q"}, ClusterQueue: "p"}}), "admit b in p")
	s.holds("a")
	for name, want := range map[string]int{"q": 1, "p": 1} {
		if u, _ := s.engine.QueueUsage(name); u.Reserving != want {
			t.Errorf("%s has %d workloads with quota, want %d", name, u.Reserving, want)
		}
	}
}

// TestVictimThatFinishesReleasesItsQuota: a victim that finishes or is deleted releases its quota for the preemptor.
func TestVictimThatFinishesReleasesItsQuota(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 4, 1, 0, 0))
	s.happens(job("high", "q", 4, 1, 1, 1))
	s.want("the victim finishes", s.happens(gone("low")), "admit high in q")
}

// TestCohortChangesDuringAPromise: after its queue has moved to another cohort, the preemptor is admitted there.
func TestCohortChangesDuringAPromise(t *testing.T) {
	reclaiming := preempt.Policy{Reclaim: preempt.Any}
	s := newScene(t, Options{}, evicting(queueOf("q", "lab", 2), reclaiming), queueOf("p", "lab", 2), localOf("q"), localOf("p"), job("borrower", "p", 4, 1, 0, 0))
	s.want("the owner of the quota arrives", s.happens(job("owner", "q", 2, 1, 0, 1)), "evict borrower for owner: reclaimed", "owner waits: WaitingForPreemptedWorkloads")
	s.want("the queue leaves its cohort with its quota", s.happens(evicting(queueOf("q", "", 2), reclaiming)), "admit owner in q")
	s.want("the victim's pods are gone, and it now exceeds all quota", s.happens(s.stopped("borrower")), "borrower waits: ExceedsMaxQuota")
}

// TestAllEqualWorkloadsAreReevaluated: a change of a queue's flavors, not only of its quotas, reevaluates all equal
// workloads that wait for it.
func TestAllEqualWorkloadsAreReevaluated(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"))
	s.want("the flavor is deleted", s.happens(FlavorDeleted{"default"}, job("a", "q", 1, 1, 0, 0), job("b", "q", 1, 1, 0, 1), job("c", "q", 1, 1, 0, 2)),
		"a waits: NoMatchingFlavor", "b waits: NoMatchingFlavor", "c waits: NoMatchingFlavor")
	s.want("the flavor is created again", s.happens(defaultFlavor), "admit a in q", "admit b in q", "admit c in q")
}

// TestQuotaOfACohortWithoutQueuesWakesOthers: quota of a child cohort without queues is lent to the queues of its
// parent.
func TestQuotaOfACohortWithoutQueuesWakesOthers(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "lab", 0), localOf("q"), CohortSet{Cohort{Name: "spare", Parent: "lab"}})
	s.want("the cohort has no quota", s.happens(job("a", "q", 1, 1, 0, 0)), "a waits: ExceedsMaxQuota")
	s.want("a child cohort has quota", s.happens(CohortSet{Cohort{Name: "spare", Parent: "lab", Quotas: queueOf("", "", 1).Quotas}}), "admit a in q")
	s.want("the quota is removed while it is held", s.happens(CohortSet{Cohort{Name: "spare"}}, job("b", "q", 1, 1, 0, 1)), "b waits: ExceedsMaxQuota")
	s.holds("a")
}

// TestACohortThatJoinsWakesTheQueuesOfItsNewParent, which it was not related to, though it has no queues itself.
func TestACohortThatJoinsWakesTheQueuesOfItsNewParent(t *testing.T) {
	one := queueOf("", "", 1).Quotas
	for name, before := range map[string][]Event{"a new one": nil, "one from elsewhere": {CohortSet{Cohort{Name: "spare", Quotas: one}}}} {
		s := newScene(t, Options{}, append(before, queueOf("q", "lab", 0), localOf("q"))...)
		s.want(name+" is not there yet", s.happens(job("a", "q", 1, 1, 0, 0)), "a waits: ExceedsMaxQuota")
		s.want(name+" joins", s.happens(CohortSet{Cohort{Name: "spare", Parent: "lab", Quotas: one}}), "admit a in q")
	}
}

// TestResultOfAnEarlierWriteDoesNotConfirmALaterDecision: an eviction was written, and the quota was released and
// given out again before the result of the write was reported.
func TestResultOfAnEarlierWriteDoesNotConfirmALaterDecision(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("a", "q", 4, 1, 0, 0))
	s.engine.Apply(job("high", "q", 4, 1, 5, 1))
	evict := decideAll(s.engine, s.now)[0]
	s.jobs["a"] = s.changed("a", func(w *Workload) { w.Version++; w.Evicted = true })
	late := Written{Key: evict.Key, UID: evict.UID, Version: s.jobs["a"].Version}
	s.engine.Apply(s.jobs["a"])
	s.engine.Apply(gone("high"))
	a := s.stopped("a")
	a.Version++
	s.engine.Apply(a)
	if again := decideAll(s.engine, s.now); len(again) != 1 || again[0].Admit == nil {
		t.Fatalf("got decisions %+v, want one admission", again)
	}
	s.engine.Apply(late)
	if s.engine.Holds(a.Key) == nil {
		t.Error("the workload lost its quota while its admission was being written")
	}
}

// TestFailureOfAnEarlierWriteDoesNotUndoALaterDecision: as above, but the eviction came too late and was not written.
// The writer reports that it dropped the eviction.
func TestFailureOfAnEarlierWriteDoesNotUndoALaterDecision(t *testing.T) {
	for name, late := range map[string]func(d Decision) Event{
		"failed":      func(d Decision) Event { return Failed{Key: d.Key, UID: d.UID, Serial: d.Serial} },
		"refused":     func(d Decision) Event { return Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, At: epoch} },
		"written ago": func(d Decision) Event { return Written{Key: d.Key, UID: d.UID, Serial: d.Serial, Version: 100} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("a", "q", 4, 1, 0, 0))
			s.engine.Apply(job("high", "q", 4, 1, 5, 1))
			evict := decideAll(s.engine, s.now)[0]
			s.engine.TakeSuperseded()
			s.engine.Apply(gone("high"))
			a := s.stopped("a")
			a.Version++
			s.engine.Apply(a)
			again := decideAll(s.engine, s.now)
			if len(again) != 1 || again[0].Admit == nil {
				t.Fatalf("got decisions %+v, want one admission", again)
			}
			if diff := cmp.Diff(map[Key]int64{evict.Key: evict.Serial}, s.engine.TakeSuperseded()); diff != "" {
				t.Errorf("superseded (-want +got):\n%s", diff)
			}
			s.engine.Apply(late(evict))
			if got := decideAll(s.engine, s.now); len(got) != 0 || s.engine.Holds(a.Key) == nil {
				t.Errorf("the workload lost its quota while its admission was being written; decisions %+v", got)
			}
			s.engine.Apply(Failed{Key: a.Key, UID: a.UID, Serial: again[0].Serial})
			if got := decideAll(s.engine, s.now); len(got) != 1 || got[0].Admit == nil {
				t.Errorf("after the admission failed: got decisions %+v, want it decided again", got)
			}
		})
	}
}

// TestReasonNamesWhatIsWrongNow: the causes are fixed one after the other, and each reason names the present one
// although all have the same code.
func TestReasonNamesWhatIsWrongNow(t *testing.T) {
	s := newScene(t, Options{})
	reasonsAfter := func(events ...Event) (why []string) {
		for _, event := range events {
			s.engine.Apply(event)
		}
		for _, d := range s.engine.Decide(s.now) {
			why = append(why, string(d.Why.Code)+": "+d.Why.Message())
			a := job("a", "q", 1, 1, 0, 0)
			a.ReportedCode = d.Why.Code
			s.engine.Apply(a)
		}
		return why
	}
	s.want("no queue exists", reasonsAfter(job("a", "q", 1, 1, 0, 0)), "Inadmissible: LocalQueue q doesn't exist")
	s.want("nothing happens", reasonsAfter())
	s.want("its LocalQueue is created", reasonsAfter(localOf("q")), "Inadmissible: ClusterQueue q doesn't exist")
	forOthers := func(cpu int64) ClusterQueueSet {
		q := queueOf("q", "", cpu)
		q.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "other"}}
		return q
	}
	s.want("its ClusterQueue is created for other namespaces", reasonsAfter(forOthers(4)), "Inadmissible: Workload namespace doesn't match ClusterQueue selector")
	s.want("its ClusterQueue changes", reasonsAfter(forOthers(5)))
	onRacks := func(taints ...corev1.Taint) FlavorSet {
		return FlavorSet{Flavor{Name: "default", NodeLabels: map[string]string{"gpu": "h100"}, Topology: "racks", NodeTaints: taints}}
	}
	s.want("its ClusterQueue accepts it, and the topology of the flavor is missing", reasonsAfter(queueOf("q", "", 4), onRacks()),
		"NoMatchingFlavor: couldn't assign flavors to pod set main: topology racks of flavor default not found")
	s.want("the topology is created, and the nodes are tainted", reasonsAfter(TopologySet{place.Topology{Name: "racks", Levels: []string{"rack"}}}, onRacks(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})),
		"NoMatchingFlavor: couldn't assign flavors to pod set main: untolerated taint {k  NoSchedule <nil>} in flavor default")
	s.want("its ClusterQueue changes again", reasonsAfter(queueOf("q", "", 5)))
}

// TestReasonNamesTheQueueThatIsStoppedNow: the reason names what is wrong now, also if another engine reported the
// earlier reason.
func TestReasonNamesTheQueueThatIsStoppedNow(t *testing.T) {
	local := func(held bool) LocalQueueSet {
		q := localOf("q")
		q.Stopped = held
		return q
	}
	stopped := func(held bool) ClusterQueueSet {
		q := queueOf("q", "", 4)
		q.Stopped = held
		return q
	}
	reported := func(code reason.Code, of string) WorkloadSet {
		a := job("a", "q", 1, 1, 0, 0)
		a.ReportedCode, a.ReportedMessage = code, of
		return a
	}
	reasonsAfter := func(s *scene, events ...Event) (why []string) {
		for _, event := range events {
			s.engine.Apply(event)
		}
		for _, d := range decideAll(s.engine, s.now) {
			why = append(why, string(d.Why.Code)+": "+d.Why.Message())
		}
		return why
	}
	s := newScene(t, Options{})
	s.want("its ClusterQueue is stopped", reasonsAfter(s, stopped(true), local(false), job("a", "q", 1, 1, 0, 0)), "OnHold: ClusterQueue q is stopped")
	s.want("its LocalQueue is stopped instead", reasonsAfter(s, reported(reason.OnHold, "ClusterQueue q is stopped"), local(true), stopped(false)), "OnHold: LocalQueue q is stopped")

	for name, tc := range map[string]struct {
		queue    ClusterQueueSet
		local    LocalQueueSet
		reported WorkloadSet
		want     []string
	}{
		"another queue was reported":           {stopped(false), local(true), reported(reason.OnHold, "ClusterQueue q is stopped"), []string{"OnHold: LocalQueue q is stopped"}},
		"this queue was reported":              {stopped(false), local(true), reported(reason.OnHold, "LocalQueue q is stopped"), nil},
		"a queue was reported that exists now": {queueOf("p", "", 4), local(false), reported(reason.Inadmissible, "LocalQueue q doesn't exist"), []string{"Inadmissible: ClusterQueue q doesn't exist"}},
	} {
		s := newScene(t, Options{})
		s.want(name, reasonsAfter(s, tc.queue, tc.local, tc.reported), tc.want...)
	}
}
