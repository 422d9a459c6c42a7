package engine

import (
	"math"
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

func (s *scene) holds(names ...string) {
	s.Helper()
	for _, name := range names {
		if s.engine.Holds(Key{Namespace: "ns", Name: name}) == nil {
			s.Errorf("%s lost its quota", name)
		}
	}
}

func TestDeletedQueueKeepsAdmittedWorkloads(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "lab", 2), queueOf("p", "lab", 2), localOf("q"), localOf("p"), job("a", "q", 2, 1, 0, 0), job("own", "p", 2, 1, 0, 0))
	s.want("no quota", s.happens(job("b", "q", 2, 1, 0, 1), job("c", "p", 1, 1, 0, 1)), "c waits: WaitingForQuota", "b waits: WaitingForQuota")
	s.want("the queue goes", s.happens(ClusterQueueDeleted{"q"}), "b waits: Inadmissible")
	s.holds("a", "own")
	s.want("a workload arrives", s.happens(job("d", "q", 1, 1, 0, 2)), "d waits: Inadmissible")
	s.want("it comes back: what it gave counts", s.happens(queueOf("q", "lab", 2)), "b waits: WaitingForQuota", "d waits: WaitingForQuota")
	s.want("once that is given back", s.happens(gone("a")), "admit b in q")
}

func TestQuotaBelowUsageNeitherEvictsNorAdmits(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("a", "q", 2, 1, 0, 0), job("b", "q", 2, 1, 0, 1))
	s.want("the quota is cut", s.happens(queueOf("q", "", 1)))
	s.holds("a", "b")
	s.want("a workload arrives", s.happens(job("c", "q", 1, 1, 0, 2), job("nothing", "q", 3, 0, 0, 3)), "admit nothing in q", "c waits: WaitingForQuota")
	s.want("one ends", s.happens(gone("a")))
	s.want("both have", s.happens(gone("b")), "admit c in q")
}

// TestCohortThatBecomesACycleKeepsAdmittedWorkloads: but its queues borrow no more.
func TestCohortThatBecomesACycleKeepsAdmittedWorkloads(t *testing.T) {
	s := newScene(t, Options{}, CohortSet{Cohort{Name: "x"}}, queueOf("q", "x", 2), queueOf("p", "x", 2), queueOf("alone", "", 1),
		localOf("q"), localOf("alone"), job("a", "q", 3, 1, 0, 0))
	s.want("a cycle", s.happens(CohortSet{Cohort{Name: "x", Parent: "x"}}))
	s.holds("a")
	s.want("a workload arrives", s.happens(job("b", "q", 1, 1, 0, 1), job("c", "alone", 1, 1, 0, 1)), "admit c in alone", "b waits: Inadmissible")
	s.want("it is fixed", s.happens(CohortSet{Cohort{Name: "x"}}), "admit b in q")
	s.want("what is used counts again", s.happens(job("d", "q", 1, 1, 0, 2)), "d waits: WaitingForQuota")
}

func TestMissingFlavorDoesNotAffectOthers(t *testing.T) {
	q := queueOf("q", "", 0)
	q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"gone", "default"}}}
	q.Quotas = quota.Quotas{{Flavor: "gone", Resource: "cpu"}: {Nominal: 9}, {Flavor: "default", Resource: "cpu"}: {Nominal: 2}}
	s := newScene(t, Options{}, q, localOf("q"))
	s.want("one fits elsewhere", s.happens(job("a", "q", 2, 1, 0, 0)), "admit a in q")
	s.want("one does not", s.happens(job("b", "q", 3, 1, 0, 1)), "b waits: ExceedsMaxQuota")
	s.want("it comes", s.happens(FlavorSet{Flavor{Name: "gone"}}), "admit b in q")
	s.want("it goes again", s.happens(FlavorDeleted{"gone"}))
	s.holds("a", "b")
}

func TestGiganticAmounts(t *testing.T) {
	const gigantic = math.MaxInt64
	for name, tc := range map[string]struct {
		quota int64
		asks  Event
		want  []string
	}{
		"a pod that asks for all there can be": {4, job("a", "q", 1, gigantic, 0, 0), []string{"a waits: ExceedsMaxQuota"}},
		"as many of them as there can be":      {4, job("a", "q", math.MaxInt32, gigantic, 0, 0), []string{"a waits: ExceedsMaxQuota"}},
		"so many that it wraps around":         {4, job("a", "q", math.MaxInt32, gigantic/2, 0, 0), []string{"a waits: ExceedsMaxQuota"}},
		"a range that is as large":             {4, smaller(job("a", "q", math.MaxInt32, 1, 0, 0), 1), []string{"admit a in q, 4 of 2147483647 main"}},
		"from a quota without bounds":          {gigantic, job("a", "q", 2, gigantic, 0, 0), []string{"admit a in q"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "lab", tc.quota), queueOf("p", "lab", 0), localOf("q"), localOf("p"))
			s.want("decided", s.happens(tc.asks), tc.want...)
			s.happens(gone("a"))
			s.want("others go on", s.happens(job("b", "q", 1, tc.quota, 0, 1)), "admit b in q")
			s.happens(gone("b"))
			if u, _ := s.engine.QueueUsage("q"); len(u.Reserved) != 0 {
				t.Errorf("all are gone, and yet it counts %v", u.Reserved)
			}
		})
	}
}

// TestAdmissionBeyondTheQuotaIsCounted: another writer made it, and it is taken as it is.
func TestAdmissionBeyondTheQuotaIsCounted(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"))
	foreign := job("a", "q", 1, 1, 0, 0)
	foreign.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "other", Count: 1,
		Flavors: map[string]string{"cpu": "default", "gpu": "unheard of"}, Usage: map[string]int64{"cpu": 9, "gpu": -3}}}}
	s.want("nothing to decide", s.happens(foreign))
	s.want("no quota", s.happens(job("b", "q", 1, 1, 0, 1)), "b waits: WaitingForQuota")
	s.want("once it is gone", s.happens(gone("a")), "admit b in q")
}

// TestClockJumps: they affect the order of eviction by age, and nothing else.
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
	s.want("at no time at all", s.happens(job("c", "q", 4, 1, 1, 9)), "evict a for c: in queue", "c waits: WaitingForPreemptedWorkloads")
	s.want("once it has gone", s.happens(s.stopped("a")), "admit c in q", "a waits: WaitingForQuota")
}

// TestLocalQueueThatPointsElsewhere: waiting workloads move along, those that hold quota stay.
func TestLocalQueueThatPointsElsewhere(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 2), queueOf("p", "", 2), localOf("q"), job("a", "q", 2, 1, 0, 0))
	s.want("no quota", s.happens(job("b", "q", 2, 1, 0, 1)), "b waits: WaitingForQuota")
	s.want("it leads elsewhere", s.happens(LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q"}, ClusterQueue: "p"}}), "admit b in p")
	s.holds("a")
	for name, want := range map[string]int{"q": 1, "p": 1} {
		if u, _ := s.engine.QueueUsage(name); u.Reserving != want {
			t.Errorf("%s has %d, want %d", name, u.Reserving, want)
		}
	}
}

// TestVictimThatFinishesReleasesItsQuota: and so does one that is deleted.
func TestVictimThatFinishesReleasesItsQuota(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 4, 1, 0, 0))
	s.happens(job("high", "q", 4, 1, 1, 1))
	s.want("the victim ends", s.happens(gone("low")), "admit high in q")
}

// TestCohortChangesDuringAPromise: the preemptor is admitted where its queue is now.
func TestCohortChangesDuringAPromise(t *testing.T) {
	reclaiming := preempt.Policy{Reclaim: preempt.Any}
	s := newScene(t, Options{}, evicting(queueOf("q", "lab", 2), reclaiming), queueOf("p", "lab", 2), localOf("q"), localOf("p"), job("borrower", "p", 4, 1, 0, 0))
	s.want("reclaim", s.happens(job("owner", "q", 2, 1, 0, 1)), "evict borrower for owner: reclaimed", "owner waits: WaitingForPreemptedWorkloads")
	s.want("the queue leaves its cohort, with its quota", s.happens(evicting(queueOf("q", "", 2), reclaiming)), "admit owner in q")
	s.want("the victim goes, and is too large by now", s.happens(s.stopped("borrower")), "borrower waits: ExceedsMaxQuota")
}

// TestAllEqualWorkloadsAreReevaluated: when they wait for a change of their queue, not of its quotas.
func TestAllEqualWorkloadsAreReevaluated(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"))
	s.want("the flavor goes", s.happens(FlavorDeleted{"default"}, job("a", "q", 1, 1, 0, 0), job("b", "q", 1, 1, 0, 1), job("c", "q", 1, 1, 0, 2)),
		"a waits: NoMatchingFlavor", "b waits: NoMatchingFlavor", "c waits: NoMatchingFlavor")
	s.want("it comes back", s.happens(defaultFlavor), "admit a in q", "admit b in q", "admit c in q")
}

// TestQuotaOfACohortWithoutQueuesWakesOthers: the queues of the cohort above it.
func TestQuotaOfACohortWithoutQueuesWakesOthers(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "lab", 0), localOf("q"), CohortSet{Cohort{Name: "spare", Parent: "lab"}})
	s.want("there is none", s.happens(job("a", "q", 1, 1, 0, 0)), "a waits: ExceedsMaxQuota")
	s.want("there is some", s.happens(CohortSet{Cohort{Name: "spare", Parent: "lab", Quotas: queueOf("", "", 1).Quotas}}), "admit a in q")
	s.want("it goes, and what is held stays", s.happens(CohortSet{Cohort{Name: "spare"}}, job("b", "q", 1, 1, 0, 1)), "b waits: ExceedsMaxQuota")
	s.holds("a")
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
		t.Fatalf("decided %+v", again)
	}
	s.engine.Apply(late)
	if s.engine.Holds(a.Key) == nil {
		t.Error("it lost its quota while the admission is written")
	}
}

// TestFailureOfAnEarlierWriteDoesNotUndoALaterDecision: as above, but the eviction came too late and was not written.
// The writer drops the eviction.
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
				t.Fatalf("decided %+v", again)
			}
			if diff := cmp.Diff(map[Key]int64{evict.Key: evict.Serial}, s.engine.TakeSuperseded()); diff != "" {
				t.Errorf("superseded (-want +got):\n%s", diff)
			}
			s.engine.Apply(late(evict))
			if got := decideAll(s.engine, s.now); len(got) != 0 || s.engine.Holds(a.Key) == nil {
				t.Errorf("it lost its quota while the admission is written; decided %+v", got)
			}
			s.engine.Apply(Failed{Key: a.Key, UID: a.UID, Serial: again[0].Serial})
			if got := decideAll(s.engine, s.now); len(got) != 1 || got[0].Admit == nil {
				t.Errorf("once that has failed: decided %+v", got)
			}
		})
	}
}

// TestReasonNamesWhatIsWrongNow: one cause after the other is fixed, all with the same code.
func TestReasonNamesWhatIsWrongNow(t *testing.T) {
	s := newScene(t, Options{})
	said := func(events ...Event) (why []string) {
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
	s.want("nothing is there", said(job("a", "q", 1, 1, 0, 0)), "Inadmissible: LocalQueue q doesn't exist")
	s.want("nothing happens", said())
	s.want("its LocalQueue comes", said(localOf("q")), "Inadmissible: ClusterQueue q doesn't exist")
	forOthers := func(cpu int64) ClusterQueueSet {
		q := queueOf("q", "", cpu)
		q.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "other"}}
		return q
	}
	s.want("its ClusterQueue comes, for others", said(forOthers(4)), "Inadmissible: Workload namespace doesn't match ClusterQueue selector")
	s.want("its ClusterQueue changes", said(forOthers(5)))
	onRacks := func(taints ...corev1.Taint) FlavorSet {
		return FlavorSet{Flavor{Name: "default", NodeLabels: map[string]string{"gpu": "h100"}, Topology: "racks", NodeTaints: taints}}
	}
	s.want("it takes it, and its flavor lacks a topology", said(queueOf("q", "", 4), onRacks()),
		"NoMatchingFlavor: couldn't assign flavors to pod set main: topology racks of flavor default not found")
	s.want("that comes, and the nodes are kept for others", said(TopologySet{place.Topology{Name: "racks", Levels: []string{"rack"}}}, onRacks(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})),
		"NoMatchingFlavor: couldn't assign flavors to pod set main: untolerated taint {k  NoSchedule <nil>} in flavor default")
	s.want("its ClusterQueue changes again", said(queueOf("q", "", 5)))
}

// TestReasonNamesTheQueueThatIsStoppedNow: or whatever else is wrong now, also from an engine that did not report the
// earlier reason itself.
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
	told := func(code reason.Code, of string) WorkloadSet {
		a := job("a", "q", 1, 1, 0, 0)
		a.ReportedCode, a.ReportedMessage = code, of
		return a
	}
	said := func(s *scene, events ...Event) (why []string) {
		for _, event := range events {
			s.engine.Apply(event)
		}
		for _, d := range decideAll(s.engine, s.now) {
			why = append(why, string(d.Why.Code)+": "+d.Why.Message())
		}
		return why
	}
	s := newScene(t, Options{})
	s.want("its ClusterQueue is stopped", said(s, stopped(true), local(false), job("a", "q", 1, 1, 0, 0)), "OnHold: ClusterQueue q is stopped")
	s.want("its LocalQueue instead", said(s, told(reason.OnHold, "ClusterQueue q is stopped"), local(true), stopped(false)), "OnHold: LocalQueue q is stopped")

	for name, tc := range map[string]struct {
		queue ClusterQueueSet
		local LocalQueueSet
		told  WorkloadSet
		want  []string
	}{
		"another queue was reported":           {stopped(false), local(true), told(reason.OnHold, "ClusterQueue q is stopped"), []string{"OnHold: LocalQueue q is stopped"}},
		"this queue was reported":              {stopped(false), local(true), told(reason.OnHold, "LocalQueue q is stopped"), nil},
		"a queue was reported that exists now": {queueOf("p", "", 4), local(false), told(reason.Inadmissible, "LocalQueue q doesn't exist"), []string{"Inadmissible: ClusterQueue q doesn't exist"}},
	} {
		s := newScene(t, Options{})
		s.want(name, said(s, tc.queue, tc.local, tc.told), tc.want...)
	}
}
