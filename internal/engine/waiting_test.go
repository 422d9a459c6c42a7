package engine

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestInadmissibleWorkloadWaitsUntilFixed: an inadmissible workload waits with a reason that says what to fix, whatever
// is free, and is admitted once that is fixed.
func TestInadmissibleWorkloadWaitsUntilFixed(t *testing.T) {
	ofTeam := func(q ClusterQueueSet, team string) ClusterQueueSet {
		q.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
		return q
	}
	in := func(team string) Event { return NamespaceSet{Name: "ns", Labels: labels.Set{"team": team}} }
	the := func(change func(*Workload)) func(*scene) Event {
		return func(s *scene) Event { return s.changed("a", change) }
	}
	is := func(ev Event) func(*scene) Event { return func(*scene) Event { return ev } }
	goesOn := func(queue Event) func(*scene) Event {
		return func(s *scene) Event {
			s.engine.Apply(queue)
			return s.changed("a", func(w *Workload) { w.BackoffReason = "" })
		}
	}
	for name, tc := range map[string]struct {
		given   []Event
		change  func(*Workload)
		waits   string
		fix     func(*scene) Event
		follows []string
	}{
		"a deactivated workload": {
			change: func(w *Workload) { w.Inactive = true }, waits: "Deactivated",
			fix: the(func(w *Workload) { w.Inactive = false })},
		"a workload in backoff": {
			change: func(w *Workload) { w.BackoffReason = "until noon" }, waits: "PendingEvaluation",
			fix: the(func(w *Workload) { w.BackoffReason = "" })},
		"a workload evicted by the drain of its LocalQueue": {
			given:  []Event{LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q"}, ClusterQueue: "q", Stopped: true}}},
			change: func(w *Workload) { w.BackoffReason = "The LocalQueue is stopped" }, waits: "OnHold",
			fix: goesOn(localOf("q"))},
		"a workload evicted by the drain of its ClusterQueue": {
			given:  []Event{stoppedQueue(queueOf("q", "", 4))},
			change: func(w *Workload) { w.BackoffReason = "The ClusterQueue is stopped" }, waits: "OnHold",
			fix: goesOn(queueOf("q", "", 4))},
		"a gated workload": {
			change: func(w *Workload) { w.Gated = "example.com/gate" }, waits: "AdmissionGated",
			fix: the(func(w *Workload) { w.Gated = "" })},
		"a workload whose pods violate a LimitRange": {
			change: func(w *Workload) { w.Refused = "too large" }, waits: "Inadmissible",
			fix: the(func(w *Workload) { w.Refused = "" })},
		"a namespace that the queue does not select": {
			given: []Event{ofTeam(queueOf("q", "", 4), "red"), in("blue")}, waits: "Inadmissible",
			fix: is(in("red"))},
		"a queue that selects the namespace later": {
			given: []Event{ofTeam(queueOf("q", "", 4), "red"), in("blue")}, waits: "Inadmissible",
			fix: is(ofTeam(queueOf("q", "", 4), "blue"))},
		"an unknown namespace": {
			given: []Event{ofTeam(queueOf("q", "", 4), "red")}, waits: "Inadmissible",
			fix: is(in("red"))},
		"a queue that selects no namespace": {
			given: []Event{func() Event { q := queueOf("q", "", 4); q.Namespaces = nil; return q }()}, waits: "Inadmissible",
			fix: is(queueOf("q", "", 4))},
		"a missing LocalQueue": {
			given: []Event{LocalQueueDeleted{Key{Namespace: "ns", Name: "q"}}}, waits: "Inadmissible",
			fix: is(localOf("q"))},
		"a stopped LocalQueue": {
			given: []Event{LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q"}, ClusterQueue: "q", Stopped: true}}}, waits: "OnHold",
			fix: is(localOf("q"))},
		"a LocalQueue that is being deleted": {
			given: []Event{LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q"}, ClusterQueue: "q", Terminating: true}}}, waits: "Inadmissible",
			fix: is(localOf("q"))},
		"a LocalQueue that points to no ClusterQueue": {
			given: []Event{LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q"}, ClusterQueue: "nowhere"}}}, waits: "Inadmissible",
			fix: is(localOf("q"))},
		"a missing ClusterQueue": {
			given: []Event{ClusterQueueDeleted{"q"}}, waits: "Inadmissible",
			fix: is(queueOf("q", "", 4))},
		"a stopped ClusterQueue": {
			given: []Event{stoppedQueue(queueOf("q", "", 4))}, waits: "OnHold",
			fix: is(queueOf("q", "", 4))},
		"a cycle of cohorts": {
			given: []Event{queueOf("q", "x", 4), CohortSet{Cohort{Name: "x", Parent: "y"}}, CohortSet{Cohort{Name: "y", Parent: "x"}}}, waits: "Inadmissible",
			fix: is(CohortSet{Cohort{Name: "y"}})},
		"a missing flavor": {
			given: []Event{FlavorDeleted{"default"}}, waits: "NoMatchingFlavor",
			fix: is(defaultFlavor)},
		"a workload that exceeds all quota": {
			given: []Event{queueOf("q", "", 0)}, waits: "ExceedsMaxQuota",
			fix: is(queueOf("q", "", 4))},
		"a workload that exceeds all quota until a cohort lends": {
			given: []Event{queueOf("q", "", 0)}, waits: "ExceedsMaxQuota",
			fix: func(s *scene) Event {
				s.engine.Apply(queueOf("lender", "lab", 4))
				return queueOf("q", "lab", 0)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, append([]Event{queueOf("q", "", 4), localOf("q"), queueOf("other", "", 1), localOf("other")}, tc.given...)...)
			a := job("a", "q", 4, 1, 0, 0)
			if tc.change != nil {
				tc.change(&a.Workload)
			}
			s.want("the workload arrives", s.happens(a), "a waits: "+tc.waits)
			b := job("b", "other", 1, 1, 0, 1)
			b.Key.Namespace = "ns"
			if tc.waits != "NoMatchingFlavor" {
				s.want("another workload arrives", s.happens(b), "admit b in other")
			}
			s.want("the problem is fixed", s.happens(tc.fix(s)), "admit a in q")
		})
	}
}

func TestAdmissionsWaitForReadyPodsIfConfigured(t *testing.T) {
	for name, tc := range map[string]struct {
		block  Block
		others string // the decision about the other queue's job
		after  []string
	}{
		"off":               {BlockNone, "admit other in p", nil},
		"of the same queue": {BlockQueue, "admit other in p", []string{"admit second in q"}},
		"of all queues":     {BlockAll, "other waits: WaitingForPodsReady", []string{"admit second in q"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{BlockUntilReady: tc.block}, queueOf("q", "", 4), queueOf("p", "", 4), localOf("q"), localOf("p"))
			s.want("the first", s.happens(job("first", "q", 1, 1, 0, 0)), "admit first in q")
			second := "second waits: WaitingForPodsReady"
			if tc.block == BlockNone {
				second = "admit second in q"
			}
			s.want("the second", s.happens(job("second", "q", 1, 1, 0, 1)), second)
			s.want("one of another queue", s.happens(job("other", "p", 1, 1, 0, 2)), tc.others)
			s.want("the first is ready", s.happens(s.changed("first", func(w *Workload) { w.Ready = true })), tc.after...)
		})
	}
}

func TestPodsReadyWakesOtherFamilies(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockAll}, queueOf("q", "", 4), queueOf("p", "", 4), localOf("q"), localOf("p"), job("first", "q", 1, 1, 0, 0))
	s.want("one of another queue", s.happens(job("other", "p", 1, 1, 0, 1)), "other waits: WaitingForPodsReady")
	s.want("the first is ready", s.happens(s.changed("first", func(w *Workload) { w.Ready = true })), "admit other in p")
}

// TestReasonIsTheQuotaAgainOnceAllPodsAreReady: others of its class wait for quota all the time.
func TestReasonIsTheQuotaAgainOnceAllPodsAreReady(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockAll}, queueOf("q", "", 1), queueOf("p", "", 4), localOf("q"), localOf("p"))
	ready := func(name string) Event { return s.changed(name, func(w *Workload) { w.Ready = true }) }
	s.happens(job("first", "q", 1, 1, 0, 0))
	s.happens(ready("first"))
	s.want("another", s.happens(job("second", "q", 1, 1, 0, 1)), "second waits: WaitingForQuota")
	s.happens(job("other", "p", 1, 1, 0, 2))
	s.want("quota is free while pods are not ready", s.happens(gone("first")))
	s.want("a third", s.happens(job("third", "q", 1, 1, 0, 3)), "third waits: WaitingForPodsReady")
	s.want("they are ready", s.happens(ready("other")), "admit second in q")
	s.want("all are", s.happens(ready("second")), "third waits: WaitingForQuota")
}

func TestEndOfUnreadyWorkloadWakesOthers(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockAll}, queueOf("q", "", 4), localOf("q"), job("first", "q", 1, 1, 0, 0))
	s.want("the second", s.happens(job("second", "q", 1, 1, 0, 1)), "second waits: WaitingForPodsReady")
	s.want("the first is evicted", s.happens(s.changed("first", func(w *Workload) { w.Evicted = true })), "admit second in q")
}

func TestChecksApplyToTheAssignedFlavors(t *testing.T) {
	q := queueOf("q", "", 4)
	q.Checks = []Check{{Name: "for all"}, {Name: "for this", Flavors: []string{"other", "default"}}, {Name: "for another", Flavors: []string{"other"}},
		{Name: "for this", Flavors: []string{"default"}}} // a second time
	s := newScene(t, Options{BlockUntilReady: BlockAll}, q, localOf("q"), job("a", "q", 1, 1, 0, 0))
	given := s.engine.Holds(Key{Namespace: "ns", Name: "a"})
	if given == nil || len(given.Checks) != 2 || given.Checks[0] != "for all" || given.Checks[1] != "for this" {
		t.Errorf("given %+v, want the checks for all flavors and for this one, once each", given)
	}
	if u, _ := s.engine.QueueUsage("q"); u.Reserving != 1 || u.Admitted != 0 {
		t.Errorf("usage = %+v, want the workload to reserve quota only", u)
	}
	s.want("a workload arrives while the other only reserves quota", s.happens(job("b", "q", 1, 1, 0, 1)), "admit b in q")
}

// TestOutdatedReasonIsCorrected: the reason changed back while its write was in progress.
func TestOutdatedReasonIsCorrected(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("running", "q", 4, 1, 0, 0))
	s.want("the workload arrives", s.happens(job("a", "q", 4, 1, 0, 1)), "a waits: WaitingForQuota")
	s.happens(s.jobs["a"])
	s.engine.Apply(stoppedQueue(queueOf("q", "", 4)))
	late := decideAll(s.engine, s.now)
	s.want("the quota changes back before the reason is written", s.happens(queueOf("q", "", 4)))
	s.want("the outdated reason is observed", s.happens(s.changed("a", func(w *Workload) { w.ReportedCode = late[0].Why.Code })), "a waits: WaitingForQuota")
}

func TestUnreferencedQueuesAreForgotten(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"))
	for i := range 3 {
		name := fmt.Sprintf("team%d", i)
		s.happens(queueOf(name, "lab", 1), localOf(name), job("a", name, 1, 1, 0, 0))
		s.happens(gone("a"), LocalQueueDeleted{Key{Namespace: "ns", Name: name}}, ClusterQueueDeleted{name})
	}
	if len(s.engine.queues) != 1 {
		t.Errorf("the engine knows %d queues, want 1", len(s.engine.queues))
	}
	for i := range 3 {
		s.happens(LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "lost"}, ClusterQueue: fmt.Sprint("nowhere", i)}}, job("a", "lost", 1, 1, 0, 0))
		s.happens(LocalQueueDeleted{Key{Namespace: "ns", Name: "lost"}}, gone("a"))
		s.happens(LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "empty"}, ClusterQueue: fmt.Sprint("nowhere", i)}})
	}
	s.happens(LocalQueueDeleted{Key{Namespace: "ns", Name: "empty"}})
	if len(s.engine.queues) != 1 {
		t.Errorf("the engine knows %d queues after LocalQueues named some that do not exist, want 1", len(s.engine.queues))
	}
	s.want("a forgotten queue is created again", s.happens(queueOf("team0", "lab", 1), localOf("team0"), job("a", "team0", 1, 1, 0, 0)), "admit a in team0")
}

// TestIfAllWaitForReadyPodsTheFirstInOrderGoesFirst: the first in order is admitted first, whatever tree its queue is
// in.
func TestIfAllWaitForReadyPodsTheFirstInOrderGoesFirst(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockAll}, queueOf("a", "", 4), queueOf("b", "", 4), queueOf("c", "lab", 4), localOf("a"), localOf("b"), localOf("c"))
	jobs := []Event{job("third", "a", 1, 1, 0, 2), job("hopeless", "b", 9, 1, 9, 0), job("second", "b", 1, 1, 0, 1), job("first", "c", 1, 1, 5, 3)}
	s.want("all arrive at once", s.happens(jobs...), "admit first in c",
		"hopeless waits: ExceedsMaxQuota", "second waits: WaitingForPodsReady", "third waits: WaitingForPodsReady")
	ready := func(name string) Event { return s.changed(name, func(w *Workload) { w.Ready = true }) }
	s.want("the first is ready", s.happens(ready("first")), "admit second in b")
	s.want("the second is ready", s.happens(ready("second")), "admit third in a")
}
