package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
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

// strict returns the queue with the strategy StrictFIFO.
func strict(q ClusterQueueSet) ClusterQueueSet { q.Strategy = Strict; return q }

// stoppedQueue returns the queue with a stop policy.
func stoppedQueue(q ClusterQueueSet) ClusterQueueSet { q.Stopped = true; return q }

// localOf returns the LocalQueue ns/name, which points to the ClusterQueue of the same name.
func localOf(name string) LocalQueueSet {
	return LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: name}, ClusterQueue: name}}
}

// job returns a workload of pods × cpu that was queued this number of seconds after the epoch.
func job(name, queue string, pods int32, cpu int64, priority int32, second int) WorkloadSet {
	return WorkloadSet{Workload{
		Key: Key{Namespace: "ns", Name: name}, UID: name + "-uid", Generation: 1, Queue: queue, Priority: priority,
		QueuedAt: epoch.Add(time.Duration(second) * time.Second),
		PodSets:  []PodSet{{Name: "main", Count: pods, PerPod: map[string]int64{"cpu": cpu}}},
	}}
}

// Holds returns the decided or confirmed admission of the workload, or nil.
func (e *Engine) Holds(key Key) *Admission {
	if w := e.workloads[key]; w != nil {
		return w.Held
	}
	return nil
}

// gone returns the event that the job is deleted or finished.
func gone(name string) WorkloadGone { return WorkloadGone{Key{Namespace: "ns", Name: name}} }

var defaultFlavor = FlavorSet{Flavor{Name: "default"}}

// decideAll runs passes until the engine is idle, and returns all decisions.
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

// decisionsAfter applies the events and returns the decisions that follow, one line each.
func decisionsAfter(e *Engine, steps ...Event) []string {
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

func TestCohortCycleIsReportedByTheQueuesBelow(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor, CohortSet{Cohort{Name: "x"}}, queueOf("q", "x", 4), localOf("q"))
	e.TakeChangedQueues()
	decisionsAfter(e, CohortSet{Cohort{Name: "x", Parent: "x"}})
	clusterQueues, localQueues := e.TakeChangedQueues()
	if diff := cmp.Diff([]string{"q"}, clusterQueues); diff != "" {
		t.Errorf("ClusterQueues (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Key{{Namespace: "ns", Name: "q"}}, localQueues); diff != "" {
		t.Errorf("LocalQueues (-want +got):\n%s", diff)
	}
	if u, _ := e.QueueUsage("q"); !u.Cyclic {
		t.Error("usage of the queue has Cyclic = false, want true")
	}
}

// at returns the event of a workload at a version, with its admission.
func at(version int64, w WorkloadSet, holds *Admission) WorkloadSet {
	w.Version, w.Admission = version, holds
	return w
}

func TestAdmissionThatWasRevokedIsNotKept(t *testing.T) {
	a, b := job("a", "q", 2, 1, 0, 0), job("b", "q", 2, 1, 0, 1)
	written := Written{Key: a.Key, UID: a.UID, Version: 5}
	// The watch skipped the states in which a had its quota for a while.
	for name, events := range map[string][]Event{
		"the event follows the result of the write":  {written, at(7, a, nil)},
		"the event precedes the result of the write": {at(7, a, nil), written},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			decisionsAfter(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), at(4, a, nil))
			decisionsAfter(e, b)
			if e.Holds(b.Key) != nil {
				t.Fatal("b holds quota that a still holds")
			}
			for _, ev := range events {
				if set, ok := ev.(WorkloadSet); ok {
					set.Inactive = true // it was deactivated and evicted, and its quota was released
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

func TestRefusedAdmissionGoesToTheNextAndIsTriedAgain(t *testing.T) {
	e := New(Options{})
	a, b := job("a", "q", 2, 1, 0, 0), job("b", "q", 2, 1, 0, 1)
	decisionsAfter(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), a, b)
	refused := func(at time.Duration) Refused {
		return Refused{Key: a.Key, UID: a.UID, Generation: a.Generation, Message: "no", At: epoch.Add(at)}
	}
	want := []string{"admit b in q", "a waits: Inadmissible: the API server refuses the admission, which is tried again with back-off, every 5 minutes at least: no"}
	if diff := cmp.Diff(want, decisionsAfter(e, refused(0))); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	a.ReportedCode = reason.Inadmissible
	if got := decisionsAfter(e, gone("b"), a); len(got) != 0 {
		t.Errorf("got decisions %v, want no retry before its time", got)
	}
	var waited []time.Duration
	at := time.Duration(0)
	for range 11 {
		due := e.Due().Sub(epoch)
		if got := e.Decide(epoch.Add(due - time.Millisecond)); len(got) != 0 {
			t.Fatalf("after %s, before the retry is due: got decisions %+v, want none", due, got)
		}
		if got := e.Decide(epoch.Add(due)); len(got) != 1 || got[0].Admit == nil {
			t.Fatalf("after %s: got decisions %+v, want the admission of a", due, got)
		}
		waited = append(waited, due-at)
		e.Apply(refused(due))
		at = due
	}
	second := time.Second
	if diff := cmp.Diff([]time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second,
		64 * second, 128 * second, 256 * second, 5 * time.Minute, 5 * time.Minute}, waited); diff != "" {
		t.Errorf("backoffs (-want +got):\n%s", diff)
	}
	a.Generation++
	if diff := cmp.Diff([]string{"admit a in q"}, decisionsAfter(e, a)); diff != "" {
		t.Errorf("decisions after the workload was changed (-want +got):\n%s", diff)
	}
	e.Apply(gone("a"))
	if due := e.Due(); !due.IsZero() {
		t.Errorf("next pass due at %s, want none: no workload waits", due)
	}
}
