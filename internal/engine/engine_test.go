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
		return w.held
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

// actionsAfter is decisionsAfter without the reasons of waiting workloads.
func actionsAfter(e *Engine, steps ...Event) []string {
	return slices.DeleteFunc(decisionsAfter(e, steps...), func(line string) bool { return strings.Contains(line, " waits: ") })
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Event
		want  []string
	}{
		"a gang is admitted completely": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), job("a", "q", 4, 1, 0, 0)},
			want:  []string{"admit a in q"},
		},
		"a gang that does not fit completely gets nothing, and the message has the amounts": {
			given: []Event{defaultFlavor, queueOf("q", "", 4000), localOf("q"), job("a", "q", 3, 1000, 0, 0), job("b", "q", 2, 1000, 0, 1)},
			want: []string{"admit a in q",
				"b waits: WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"},
		},
		"a workload that exceeds all quota has its own reason": {
			given: []Event{defaultFlavor, queueOf("q", "", 4000), localOf("q"), job("a", "q", 5, 1000, 0, 0)},
			want: []string{"a waits: ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, " +
				"previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)"},
		},
		"order by priority, then by time": {
			given: []Event{defaultFlavor, queueOf("q", "", 3), localOf("q"),
				job("late", "q", 1, 1, 0, 9), job("early", "q", 1, 1, 0, 1), job("urgent", "q", 1, 1, 5, 10)},
			want: []string{"admit urgent in q", "admit early in q", "admit late in q"},
		},
		"under BestEffortFIFO workloads that fit pass those that do not": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), job("big", "q", 1, 5, 0, 0), job("small", "q", 1, 1, 0, 1)},
			want: []string{"admit small in q", "big waits: ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, " +
				"previously considered podsets requests (0) + current podset request (5m) > maximum capacity (4m)"},
		},
		"under StrictFIFO no workload passes the head": {
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
		"a workload that names no LocalQueue is told so": {
			given: []Event{defaultFlavor, queueOf("q", "", 1), localOf("q"), job("a", "", 1, 1, 0, 0)},
			want:  []string{"a waits: Inadmissible: the Workload names no LocalQueue: set its spec.queueName"},
		},
		"a missing ClusterQueue is reported": {
			given: []Event{localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want:  []string{"a waits: Inadmissible: ClusterQueue q doesn't exist"},
		},
		"a stopped queue admits none": {
			given: []Event{defaultFlavor, stoppedQueue(queueOf("q", "", 4)), localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want:  []string{"a waits: OnHold: ClusterQueue q is stopped"},
		},
		"an inactive queue admits none": {
			given: []Event{defaultFlavor, func() Event { q := queueOf("q", "", 4); q.Inactive = "it has checks"; return q }(), localOf("q"), job("a", "q", 1, 1, 0, 0)},
			want:  []string{"a waits: Inadmissible: ClusterQueue q is inactive: it has checks"},
		},
		"queues of a cohort cycle admit nothing, and the cycle is reported": {
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
		"several resources that no group covers are all named": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), func() Event {
				w := job("a", "q", 1, 1, 0, 0)
				w.PodSets[0].PerPod["nvidia.com/gpu"], w.PodSets[0].PerPod["memory"] = 1, 1
				return w
			}()},
			want: []string{"a waits: NoMatchingFlavor: couldn't assign flavors to pod set main: resources memory, nvidia.com/gpu unavailable in ClusterQueue"},
		},
		"a request of zero of a resource that no group covers": {
			given: []Event{defaultFlavor, queueOf("q", "", 4), localOf("q"), func() Event {
				w := job("a", "q", 1, 1, 0, 0)
				w.PodSets[0].PerPod["nvidia.com/gpu"] = 0
				return w
			}()},
			want: []string{"admit a in q"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decisionsAfter(New(Options{}), tc.given...)); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLargeWorkloadIsToldOfTheNextResource once there is enough quota for the first one, here or in the cohort. Other
// amounts alone are not told again.
func TestTooLargeWorkloadIsToldOfTheNextResource(t *testing.T) {
	with := func(name string, cpu, memory int64) ClusterQueueSet {
		q := queueOf(name, "lab", cpu)
		q.Groups[0].Resources = []string{"cpu", "tokens"}
		q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "tokens"}] = quota.Limits{Nominal: memory, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
		return q
	}
	large := job("large", "q", 1, 9000, 0, 0)
	large.PodSets[0].PerPod["tokens"] = 9
	exceeds := func(what string) string {
		return "large waits: ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for " + what
	}
	const cpu = "cpu in flavor default, previously considered podsets requests (0) + current podset request (9) > maximum capacity (4)"
	const tokens = "tokens in flavor default, previously considered podsets requests (0) + current podset request (9) > maximum capacity (2)"
	for name, more := range map[string]func(cpu int64) ClusterQueueSet{
		"in its queue":  func(cpu int64) ClusterQueueSet { return with("q", 4000+cpu, 2) },
		"in the cohort": func(cpu int64) ClusterQueueSet { return with("other", cpu, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, with("q", 4000, 2), with("other", 0, 0), localOf("q"))
			s.want("the job arrives", decisionsAfter(s.engine, large), exceeds(cpu))
			waits := large
			waits.Version, waits.ReportedCode = 1, reason.ExceedsMaxQuota
			s.want("that is written", decisionsAfter(s.engine, waits))
			s.want("there is more cpu, but too little", decisionsAfter(s.engine, more(1000)))
			s.want("there is enough cpu", decisionsAfter(s.engine, more(5000)), exceeds(tokens))
		})
	}
}

func TestReleasedQuotaGoesToWaitingWorkloads(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor, queueOf("q", "lab", 2), queueOf("p", "lab", 2), localOf("q"), localOf("p"),
		job("a", "p", 4, 1, 0, 0), job("b", "q", 2, 1, 0, 1))
	if got := decisionsAfter(e); len(got) != 0 {
		t.Errorf("got decisions %v, want none without an event", got)
	}
	if diff := cmp.Diff([]string{"admit a in p"}, decisionsAfter(e, gone("b"))); diff != "" {
		t.Errorf("decisions after b ended (-want +got):\n%s", diff)
	}
}

func TestAssumedAdmissionOutlivesStaleEventsAndEndsWithFailure(t *testing.T) {
	e := New(Options{})
	a := job("a", "q", 2, 1, 0, 0)
	decisionsAfter(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), a)
	if got := decisionsAfter(e, a); len(got) != 0 {
		t.Errorf("got decisions %v, want none after an event from before the write", got)
	}
	want := []string{"admit a in q"}
	if diff := cmp.Diff(want, decisionsAfter(e, Failed{Key: a.Key, UID: a.UID})); diff != "" {
		t.Errorf("decisions after the write failed (-want +got):\n%s", diff)
	}
	confirmed := a
	confirmed.Admission = e.Holds(a.Key)
	if got := decisionsAfter(e, confirmed); len(got) != 0 {
		t.Errorf("got decisions %v, want none after the confirmation", got)
	}
	if got := decisionsAfter(e, Failed{Key: a.Key, UID: a.UID}); len(got) != 0 || e.Holds(a.Key) == nil {
		t.Errorf("got decisions %v, want the confirmed admission kept", got)
	}
}

// TestUnwrittenAdmissionCanBeWithdrawn: without that, a stream of small workloads, some of which are always being
// written, would keep a large one of higher priority waiting for as long as it lasts.
func TestUnwrittenAdmissionCanBeWithdrawn(t *testing.T) {
	begin := func() (*Engine, Failed) {
		e := New(Options{})
		q := queueOf("q", "", 2)
		q.Preemption.WithinQueue = preempt.LowerPriority
		small := job("small", "q", 1, 1, 0, 0)
		want := []string{"admit small in q", "withdraw small"}
		got := actionsAfter(e, defaultFlavor, q, localOf("q"), small)
		got = append(got, actionsAfter(e, job("large", "q", 2, 1, 1, 1))...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("decisions (-want +got):\n%s", diff)
		}
		if got := actionsAfter(e, small); len(got) != 0 {
			t.Fatalf("got decisions %v, want none after an event from before the write", got)
		}
		return e, Failed{Key: small.Key, UID: small.UID}
	}
	t.Run("the write failed", func(t *testing.T) {
		e, admission := begin()
		if diff := cmp.Diff([]string{"admit large in q"}, actionsAfter(e, admission)); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
	})
	t.Run("the write succeeded", func(t *testing.T) {
		e, admission := begin()
		if diff := cmp.Diff([]string{"evict small for large"}, actionsAfter(e, Written{Key: admission.Key, UID: admission.UID, Version: 1})); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
	})
	t.Run("the event precedes the result of the write", func(t *testing.T) {
		e, admission := begin()
		small := job("small", "q", 1, 1, 0, 0)
		small.Version, small.Admission, small.Admitted = 1, e.Holds(admission.Key), true
		if diff := cmp.Diff([]string{"evict small for large"}, actionsAfter(e, small)); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
		if got := actionsAfter(e, Written{Key: admission.Key, UID: admission.UID, Version: 1}); len(got) != 0 || e.Holds(admission.Key) == nil {
			t.Errorf("got decisions %v, want none: the result was already known by the event", got)
		}
	})
	t.Run("the write succeeded and the quota is not needed", func(t *testing.T) {
		e, admission := begin()
		if got := actionsAfter(e, gone("large"), Written{Key: admission.Key, UID: admission.UID, Version: 1}); len(got) != 0 || e.Holds(admission.Key) == nil {
			t.Errorf("got decisions %v, want the admission kept", got)
		}
	})
}

// TestWithdrawnWorkloadBlocksOthersUntilItsWriteIsReported: the withdrawn admission may be written all the same, and
// the workload's pods are not ready then.
func TestWithdrawnWorkloadBlocksOthersUntilItsWriteIsReported(t *testing.T) {
	e := New(Options{BlockUntilReady: BlockQueue})
	own, other := queueOf("own", "team", 1), queueOf("other", "team", 1)
	own.Preemption.Reclaim = preempt.Any
	small := job("small", "other", 2, 1, 0, 0)
	got := actionsAfter(e, defaultFlavor, own, other, localOf("own"), localOf("other"), small)
	got = append(got, actionsAfter(e, job("owner", "own", 1, 1, 0, 1))...)
	got = append(got, actionsAfter(e, job("next", "other", 1, 1, 1, 2))...)
	if diff := cmp.Diff([]string{"admit small in other", "withdraw small"}, got); diff != "" {
		t.Errorf("decisions while the write is open (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"admit owner in own", "admit next in other"}, actionsAfter(e, Failed{Key: small.Key, UID: small.UID})); diff != "" {
		t.Errorf("decisions after the result of the write (-want +got):\n%s", diff)
	}
}

func TestWorkloadOfTheSameNameIsAnother(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor, queueOf("q", "", 1), localOf("q"), job("a", "q", 1, 1, 0, 0))
	again := job("a", "q", 1, 1, 0, 5)
	again.UID = "second"
	if diff := cmp.Diff([]string{"admit a in q"}, decisionsAfter(e, again)); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	if got := decisionsAfter(e, Failed{Key: again.Key, UID: "a-uid"}); len(got) != 0 || e.Holds(again.Key) == nil {
		t.Errorf("got decisions %v, want the admission of the second workload kept after a failure of the first", got)
	}
}

func TestFlavorsAreTriedInOrder(t *testing.T) {
	e := New(Options{})
	q := queueOf("q", "", 0)
	q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"spot", "reserved"}}}
	q.Quotas = quota.Quotas{{Flavor: "spot", Resource: "cpu"}: {Nominal: 1}, {Flavor: "reserved", Resource: "cpu"}: {Nominal: 2}}
	decisionsAfter(e, FlavorSet{Flavor{Name: "spot"}}, FlavorSet{Flavor{Name: "reserved"}}, q, localOf("q"),
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

func TestStaleEventsAreIgnored(t *testing.T) {
	e := New(Options{})
	a := job("a", "q", 2, 1, 0, 0)
	decisionsAfter(e, defaultFlavor, queueOf("q", "", 2), localOf("q"), at(4, a, nil), Written{Key: a.Key, UID: a.UID, Version: 5})
	e.Apply(Written{Key: a.Key, UID: a.UID, Version: 5})
	if got := decisionsAfter(e, at(4, a, nil)); len(got) != 0 || e.Holds(a.Key) == nil {
		t.Errorf("got decisions %v, want none after an event from before the write", got)
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
	if diff := cmp.Diff([]time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second, 128 * second,
		256 * second, 5 * time.Minute, 5 * time.Minute}, waited); diff != "" {
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
