package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// queueOf returns a ClusterQueue for all namespaces with cpu quota in one flavor.
func queueOf(name, cohort string, cpu int64) ClusterQueueSet {
	return ClusterQueueSet{ClusterQueue{
		Name:   name,
		Cohort: cohort,
		Groups: []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"default"}}},
		Quotas: quota.Quotas{{Flavor: "default", Resource: "cpu"}: {
			Nominal: cpu, Borrowing: quota.Unlimited, Lending: quota.Unlimited}},
		Namespaces: &metav1.LabelSelector{},
	}}
}

func strict(q ClusterQueueSet) ClusterQueueSet { q.Strategy = Strict; return q }
func held(q ClusterQueueSet) ClusterQueueSet   { q.Stopped = true; return q }

// localOf returns the LocalQueue ns/name, which points to the ClusterQueue of the same name.
func localOf(name string) LocalQueueSet {
	return LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: name}, ClusterQueue: name}}
}

// job returns a workload of pods × cpu that was queued this number of seconds after the epoch.
func job(name, queue string, pods int32, cpu int64, priority int32, second int) WorkloadSet {
	return WorkloadSet{Workload{
		Key: Key{Namespace: "ns", Name: name}, UID: name + "-uid", Queue: queue, Priority: priority,
		QueuedAt: epoch.Add(time.Duration(second) * time.Second),
		PodSets:  []PodSet{{Name: "main", Count: pods, PerPod: map[string]int64{"cpu": cpu}}},
	}}
}

// Holds returns the admission of the workload, decided or confirmed, or nil.
func (e *Engine) Holds(key Key) *Admission {
	if w := e.workloads[key]; w != nil {
		return w.held
	}
	return nil
}

func gone(name string) WorkloadGone { return WorkloadGone{Key{Namespace: "ns", Name: name}} }

var defaultFlavor = FlavorSet{Flavor{Name: "default"}}

// decideAll decides until there is nothing left to do.
func decideAll(e *Engine, now time.Time) []Decision {
	out := e.Decide(now)
	for passes := 0; e.Busy(); passes++ {
		if passes > 1000 {
			panic("decisions never end")
		}
		out = append(out, e.Decide(now)...)
	}
	return out
}

// story applies events and returns the decisions after each, one line per decision.
func story(e *Engine, steps ...Event) []string {
	var lines []string
	for _, ev := range steps {
		e.Apply(ev)
	}
	for _, d := range decideAll(e, epoch) {
		switch {
		case d.Admit != nil:
			lines = append(lines, fmt.Sprintf("admit %s in %s", d.Key.Name, d.Admit.ClusterQueue))
		case d.Evict != nil:
			lines = append(lines, fmt.Sprintf("evict %s for %s", d.Key.Name, d.Evict.Preemptor.Name))
		case d.Withdraw:
			lines = append(lines, "withdraw "+d.Key.Name)
		default:
			lines = append(lines, fmt.Sprintf("%s waits: %s: %s", d.Key.Name, d.Why.Code, d.Why.Message()))
		}
	}
	return lines
}

// deeds is story without the reasons of waiting workloads.
func deeds(e *Engine, steps ...Event) []string {
	return slices.DeleteFunc(story(e, steps...), func(line string) bool { return strings.Contains(line, " waits: ") })
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Event
		want  []string
	}{
		"a gang is admitted as a whole": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), job("a", "q", 4, 1, 0, 0)},
			want:  []string{"admit a in q"},
		},
		"a gang that does not fit whole gets nothing, and numbers that say so": {
			given: []Event{defaultFlavor, queueOf("q", "", 4000), localOf("q"), job("a", "q", 3, 1000, 0, 0), job("b", "q", 2, 1000, 0, 1)},
			want: []string{"admit a in q",
				"b waits: WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"},
		},
		"what no empty queue could hold is distinguished": {
			given: []Event{defaultFlavor, queueOf("q", "", 4000), localOf("q"), job("a", "q", 5, 1000, 0, 0)},
			want: []string{"a waits: ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, " +
				"previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)"},
		},
		"higher priority goes first, then the longest waiting": {
			given: []Event{defaultFlavor, queueOf("q", "", 3), localOf("q"),
				job("late", "q", 1, 1, 0, 9), job("early", "q", 1, 1, 0, 1), job("urgent", "q", 1, 1, 5, 10)},
			want: []string{"admit urgent in q", "admit early in q", "admit late in q"},
		},
		"under BestEffortFIFO workloads that fit pass those that do not": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), job("big", "q", 1, 5, 0, 0), job("small", "q", 1, 1, 0, 1)},
			want: []string{"admit small in q", "big waits: ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, " +
				"previously considered podsets requests (0) + current podset request (5m) > maximum capacity (4m)"},
		},
		"under StrictFIFO none passes the head": {
			given: []Event{defaultFlavor, strict(queueOf("q", "", 4)), localOf("q"),
				job("running", "q", 1, 3, 0, 0), job("head", "q", 1, 2, 0, 1), job("small", "q", 1, 1, 0, 2)},
			want: []string{"admit running in q",
				"head waits: WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1m more needed",
				"small waits: WaitingForQuota: waits behind the head of ClusterQueue q, which is StrictFIFO"},
		},
		"free quota of the cohort is borrowed": {
			given: []Event{defaultFlavor, queueOf("q", "lab", 1), queueOf("other", "lab", 3), localOf("q"), job("a", "q", 4, 1, 0, 0)},
			want:  []string{"admit a in q"},
		},
		"a missing LocalQueue is reported": {
			given: []Event{defaultFlavor, queueOf("q", "", 1), job("a", "nowhere", 1, 1, 0, 0)},
			want:  []string{"a waits: Inadmissible: LocalQueue nowhere doesn't exist"},
		},
		"a missing ClusterQueue is reported": {
			given: []Event{localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want:  []string{"a waits: Inadmissible: ClusterQueue q doesn't exist"},
		},
		"a stopped queue admits none": {
			given: []Event{defaultFlavor, held(queueOf("q", "", 4)), localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want:  []string{"a waits: OnHold: ClusterQueue q is stopped"},
		},
		"an inactive queue admits none": {
			given: []Event{defaultFlavor, func() Event { q := queueOf("q", "", 4); q.Inactive = "it has checks"; return q }(), localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want:  []string{"a waits: Inadmissible: ClusterQueue q is inactive: it has checks"},
		},
		"members of a cohort cycle wait, and the cycle is reported": {
			given: []Event{defaultFlavor, CohortSet{Cohort{Name: "x", Parent: "y"}}, CohortSet{Cohort{Name: "y", Parent: "x"}},
				queueOf("q", "x", 4), localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want: []string{"a waits: Inadmissible: ClusterQueue q is inactive: its cohorts form a cycle"},
		},
		"a resource that no group covers has no flavor": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), func() Event {
				w := job("a", "q", 1, 1, 0, 0)
				w.PodSets[0].PerPod["nvidia.com/gpu"] = 1
				return w
			}()},
			want: []string{"a waits: NoMatchingFlavor: couldn't assign flavors to pod set main: resource nvidia.com/gpu unavailable in ClusterQueue"},
		},
		"zero of a resource that no group covers is nothing": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), func() Event {
				w := job("a", "q", 1, 1, 0, 0)
				w.PodSets[0].PerPod["nvidia.com/gpu"] = 0
				return w
			}()},
			want: []string{"admit a in q"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, story(New(Options{}), tc.given...)); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReleasedQuotaGoesToWaitingWorkloads(t *testing.T) {
	e := New(Options{})
	story(e, defaultFlavor, queueOf("q", "lab", 2), queueOf("p", "lab", 2), localOf("q"), localOf("p"),
		job("a", "p", 4, 1, 0, 0), job("b", "q", 2, 1, 0, 1))
	if got := story(e); len(got) != 0 {
		t.Errorf("nothing happened, and yet: %v", got)
	}
	if diff := cmp.Diff([]string{"admit a in p"}, story(e, gone("b"))); diff != "" {
		t.Errorf("after b ended (-want +got):\n%s", diff)
	}
}

func TestAssumedAdmissionOutlivesStaleEventsAndEndsWithFailure(t *testing.T) {
	e := New(Options{})
	a := job("a", "q", 2, 1, 0, 0)
	story(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), a)
	if got := story(e, a); len(got) != 0 {
		t.Errorf("news from before the write changed something: %v", got)
	}
	want := []string{"admit a in q"}
	if diff := cmp.Diff(want, story(e, Failed{Key: a.Key, UID: a.UID})); diff != "" {
		t.Errorf("after the write failed (-want +got):\n%s", diff)
	}
	confirmed := a
	confirmed.Admission = e.Holds(a.Key)
	if got := story(e, confirmed); len(got) != 0 {
		t.Errorf("confirmation changed something: %v", got)
	}
	if got := story(e, Failed{Key: a.Key, UID: a.UID}); len(got) != 0 || e.Holds(a.Key) == nil {
		t.Errorf("a confirmed admission was undone: %v", got)
	}
}

// TestUnwrittenAdmissionCanBeWithdrawn: otherwise a stream of small workloads, some of which are always being
// written, would keep a large one of higher priority waiting for as long as it lasts.
func TestUnwrittenAdmissionCanBeWithdrawn(t *testing.T) {
	begin := func() (*Engine, Failed) {
		e := New(Options{})
		q := queueOf("q", "", 2)
		q.Preemption.WithinQueue = preempt.LowerPriority
		small := job("small", "q", 1, 1, 0, 0)
		want := []string{"admit small in q", "withdraw small"}
		got := deeds(e, defaultFlavor, q, localOf("q"), small)
		got = append(got, deeds(e, job("large", "q", 2, 1, 1, 1))...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if got := deeds(e, small); len(got) != 0 {
			t.Fatalf("news from before the write changed something: %v", got)
		}
		return e, Failed{Key: small.Key, UID: small.UID}
	}
	t.Run("which was not written", func(t *testing.T) {
		e, taken := begin()
		if diff := cmp.Diff([]string{"admit large in q"}, deeds(e, taken)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("which was being written", func(t *testing.T) {
		e, taken := begin()
		if diff := cmp.Diff([]string{"evict small for large"}, deeds(e, Written{Key: taken.Key, UID: taken.UID, Version: 1})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("whose event precedes the result of the write", func(t *testing.T) {
		e, taken := begin()
		small := job("small", "q", 1, 1, 0, 0)
		small.Version, small.Admission, small.Admitted = 1, e.Holds(taken.Key), true
		if diff := cmp.Diff([]string{"evict small for large"}, deeds(e, small)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := deeds(e, Written{Key: taken.Key, UID: taken.UID, Version: 1}); len(got) != 0 || e.Holds(taken.Key) == nil {
			t.Errorf("what was known already changed something: %v", got)
		}
	})
	t.Run("which was written, and its quota is not needed", func(t *testing.T) {
		e, taken := begin()
		if got := deeds(e, gone("large"), Written{Key: taken.Key, UID: taken.UID, Version: 1}); len(got) != 0 || e.Holds(taken.Key) == nil {
			t.Errorf("it lost what it holds: %v", got)
		}
	})
}

// TestWithdrawnWorkloadBlocksOthersUntilItsWriteIsReported: it may be written all the same, and its pods are not
// ready then.
func TestWithdrawnWorkloadBlocksOthersUntilItsWriteIsReported(t *testing.T) {
	e := New(Options{BlockUntilReady: BlockQueue})
	own, other := queueOf("own", "team", 1), queueOf("other", "team", 1)
	own.Preemption.Reclaim = preempt.Any
	small := job("small", "other", 2, 1, 0, 0)
	got := deeds(e, defaultFlavor, own, other, localOf("own"), localOf("other"), small)
	got = append(got, deeds(e, job("owner", "own", 1, 1, 0, 1))...)
	got = append(got, deeds(e, job("next", "other", 1, 1, 1, 2))...)
	if diff := cmp.Diff([]string{"admit small in other", "withdraw small"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"admit owner in own", "admit next in other"}, deeds(e, Failed{Key: small.Key, UID: small.UID})); diff != "" {
		t.Errorf("once it is known (-want +got):\n%s", diff)
	}
}

func TestWorkloadOfTheSameNameIsAnother(t *testing.T) {
	e := New(Options{})
	story(e, defaultFlavor, queueOf("q", "", 1), localOf("q"), job("a", "q", 1, 1, 0, 0))
	again := job("a", "q", 1, 1, 0, 5)
	again.UID = "second"
	if diff := cmp.Diff([]string{"admit a in q"}, story(e, again)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := story(e, Failed{Key: again.Key, UID: "a-uid"}); len(got) != 0 || e.Holds(again.Key) == nil {
		t.Errorf("a failure of the first undid the second: %v", got)
	}
}

func TestFlavorsAreTriedInOrder(t *testing.T) {
	e := New(Options{})
	q := queueOf("q", "", 0)
	q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"spot", "reserved"}}}
	q.Quotas = quota.Quotas{{Flavor: "spot", Resource: "cpu"}: {Nominal: 1}, {Flavor: "reserved", Resource: "cpu"}: {Nominal: 2}}
	story(e, FlavorSet{Flavor{Name: "spot"}}, FlavorSet{Flavor{Name: "reserved"}}, q, localOf("q"),
		job("a", "q", 1, 1, 0, 0), job("b", "q", 2, 1, 0, 1))
	got := map[string]string{}
	for _, name := range []string{"a", "b"} {
		got[name] = e.Holds(Key{Namespace: "ns", Name: name}).PodSets[0].Flavors["cpu"]
	}
	if diff := cmp.Diff(map[string]string{"a": "spot", "b": "reserved"}, got); diff != "" {
		t.Errorf("flavors (-want +got):\n%s", diff)
	}
}

func TestCohortCycleIsReportedByTheQueuesBelow(t *testing.T) {
	e := New(Options{})
	story(e, defaultFlavor, CohortSet{Cohort{Name: "x"}}, queueOf("q", "x", 4), localOf("q"))
	e.PopChangedQueues()
	story(e, CohortSet{Cohort{Name: "x", Parent: "x"}})
	clusterQueues, localQueues := e.PopChangedQueues()
	if diff := cmp.Diff([]string{"q"}, clusterQueues); diff != "" {
		t.Errorf("ClusterQueues (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Key{{Namespace: "ns", Name: "q"}}, localQueues); diff != "" {
		t.Errorf("LocalQueues (-want +got):\n%s", diff)
	}
	if u, _ := e.QueueUsage("q"); !u.Cyclic {
		t.Error("the queue's usage does not tell of the cycle")
	}
}

// at returns the event of a workload at a version, with its admission.
func at(version int64, w WorkloadSet, holds *Admission) WorkloadSet {
	w.Version, w.Admission = version, holds
	return w
}

func TestAdmissionThatWasTakenBackIsNotKept(t *testing.T) {
	a, b := job("a", "q", 2, 1, 0, 0), job("b", "q", 2, 1, 0, 1)
	written := Written{Key: a.Key, UID: a.UID, Version: 5}
	// What the watch skipped is that a had its quota for a while.
	for name, news := range map[string][]Event{
		"the event follows the result of the write":  {written, at(7, a, nil)},
		"the event precedes the result of the write": {at(7, a, nil), written},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			story(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), at(4, a, nil))
			story(e, b)
			if e.Holds(b.Key) != nil {
				t.Fatal("b has what a holds")
			}
			for _, ev := range news {
				if set, ok := ev.(WorkloadSet); ok {
					set.Inactive = true // it was deactivated, evicted, and gave back its quota
					ev = set
				}
				e.Apply(ev)
			}
			decideAll(e, epoch)
			if e.Holds(a.Key) != nil || e.Holds(b.Key) == nil {
				t.Errorf("a holds %v, b holds %v, want b to have it", e.Holds(a.Key), e.Holds(b.Key))
			}
		})
	}
}

func TestStaleEventsAreIgnored(t *testing.T) {
	e := New(Options{})
	a := job("a", "q", 2, 1, 0, 0)
	story(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), at(4, a, nil), Written{Key: a.Key, UID: a.UID, Version: 5})
	e.Apply(Written{Key: a.Key, UID: a.UID, Version: 5})
	if got := story(e, at(4, a, nil)); len(got) != 0 || e.Holds(a.Key) == nil {
		t.Errorf("news from before the write undid it: %v", got)
	}
}

func TestRefusedAdmissionGoesToTheNextAndIsTriedAgain(t *testing.T) {
	e := New(Options{})
	a, b := job("a", "q", 2, 1, 0, 0), job("b", "q", 2, 1, 0, 1)
	story(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), a, b)
	refused := func(at time.Duration) Refused {
		return Refused{Key: a.Key, UID: a.UID, Generation: a.Generation, Message: "no", At: epoch.Add(at)}
	}
	want := []string{"admit b in q", "a waits: Inadmissible: the API server refuses the admission, which is tried again with back-off, every 5 minutes at least: no"}
	if diff := cmp.Diff(want, story(e, refused(0))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.ReportedCode = reason.Inadmissible
	if got := story(e, gone("b"), a); len(got) != 0 {
		t.Errorf("it was tried again at once: %v", got)
	}
	var waited []time.Duration
	at := time.Duration(0)
	for range 11 {
		due := e.Due().Sub(epoch)
		if got := e.Decide(epoch.Add(due - time.Millisecond)); len(got) != 0 {
			t.Fatalf("after %s, before it is due: %+v", due, got)
		}
		if got := e.Decide(epoch.Add(due)); len(got) != 1 || got[0].Admit == nil {
			t.Fatalf("after %s: %+v", due, got)
		}
		waited = append(waited, due-at)
		e.Apply(refused(due))
		at = due
	}
	second := time.Second
	if diff := cmp.Diff([]time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second, 128 * second,
		256 * second, 5 * time.Minute, 5 * time.Minute}, waited); diff != "" {
		t.Errorf("waited (-want +got):\n%s", diff)
	}
	a.Generation++
	if diff := cmp.Diff([]string{"admit a in q"}, story(e, a)); diff != "" {
		t.Errorf("once it was changed (-want +got):\n%s", diff)
	}
	e.Apply(gone("a"))
	if due := e.Due(); !due.IsZero() {
		t.Errorf("due at %s although none waits", due)
	}
}
