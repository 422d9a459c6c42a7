package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// holds returns a workload that is admitted to the queue with this amount of cpu.
func holds(name, queue string, cpu int64, priority int32) WorkloadSet {
	w := job(name, queue, 1, cpu, priority, 0)
	w.Admitted = true
	w.Admission = &Admission{ClusterQueue: queue, PodSets: []Assignment{{
		PodSet: "main", Count: 1, Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": cpu}}}}
	return w
}

// elasticHolder returns an elastic workload of up to four pods that is admitted to the queue q with size pods.
func elasticHolder(name string, fewest, size, priority int32) WorkloadSet {
	w := between(name, fewest, 4, priority, 0)
	w.Admitted, w.Admission = true, holds(name, "q", int64(size), priority).Admission
	w.Admission.PodSets[0].Count = size
	return w
}

// evicted returns the workload as it is while it is being evicted.
func evicted(w WorkloadSet) WorkloadSet { w.Evicted = true; return w }

// summary returns an explanation in short lines.
func summary(x reason.Explanation) []string {
	lines := []string{fmt.Sprintf("%s %s %d/%d", x.State, x.Code, x.Position, x.Length)}
	for _, ps := range x.PodSets {
		for _, f := range ps.Flavors {
			line := fmt.Sprintf("flavor %s %s", f.Flavor, f.Fit)
			for _, a := range f.Amounts {
				line += fmt.Sprintf(" %s asked %s free %s missing %s", a.Resource, a.Asked.String(), a.Free.String(),
					a.Missing.String())
			}
			if f.Nearest {
				line += " <- nearest"
			}
			if f.Message != "" {
				line += ": " + f.Message
			}
			lines = append(lines, line)
		}
	}
	for _, h := range x.Holders {
		cpu := h.Holds[corev1.ResourceCPU]
		lines = append(lines, fmt.Sprintf("held by %s %s: %s", h.Name.Name, cpu.String(), h.NotPreemptable))
	}
	for _, v := range x.WouldPreempt {
		lines = append(lines, fmt.Sprintf("would preempt %s %s", v.Name.Name, v.Cause))
	}
	for _, n := range x.WouldFitAfter {
		lines = append(lines, "would fit after "+n.Name)
	}
	if x.Behind != nil {
		lines = append(lines, "behind "+x.Behind.Name)
	}
	return lines
}

func TestExplain(t *testing.T) {
	tainted := FlavorSet{Flavor{Name: "reserved",
		NodeTaints: []corev1.Taint{{Key: "reserved", Value: "true", Effect: corev1.TaintEffectNoSchedule}}}}
	twoFlavors := queueOf("q", "", 4)
	twoFlavors.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"reserved", "default"}}}
	twoFlavors.Quotas[quota.FlavorResource{Flavor: "reserved", Resource: "cpu"}] = quota.Limits{Nominal: 9,
		Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	twoGroups := queueOf("q", "", 4)
	twoGroups.Groups = append(slices.Clone(twoGroups.Groups),
		flavor.Group{Resources: []string{"gpu"}, Flavors: []string{"gpus"}})
	twoGroups.Quotas[quota.FlavorResource{Flavor: "gpus", Resource: "gpu"}] = quota.Limits{Nominal: 2,
		Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	within := func(r preempt.Rule) preempt.Policy { return preempt.Policy{WithinQueue: r} }
	refused := job("x", "q", 1, 2, 5, 0)
	refused.Refused = "its requests exceed its limits"
	inactive := job("x", "q", 1, 1, 0, 0)
	inactive.Inactive = true

	for name, tc := range map[string]struct {
		given []Event
		want  []string
	}{
		"one that fits is next": {
			given: []Event{queueOf("q", "", 4), job("x", "q", 1, 3, 0, 0)},
			want:  []string{"Waiting PendingEvaluation 1/1", "flavor default Fits cpu asked 3m free 4m missing 0 <- nearest"},
		},
		"all flavors are surveyed, including those that refuse": {
			given: []Event{tainted, twoFlavors, holds("a", "q", 3, 0), job("x", "q", 1, 2, 0, 0)},
			want: []string{"Waiting WaitingForQuota 1/1",
				"flavor reserved Refused: untolerated taint {reserved true NoSchedule <nil>} in flavor reserved",
				"flavor default Short cpu asked 2m free 1m missing 1m <- nearest",
				"held by a 3m: withinClusterQueue is Never, and it has the same priority", "would fit after a"},
		},
		"only some holders have to end": {
			given: []Event{queueOf("q", "", 6), holds("a", "q", 1, 0), holds("b", "q", 2, 0), holds("c", "q", 3, 0),
				job("x", "q", 1, 3, 0, 0)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 3m free 0 missing 3m <- nearest",
				"held by c 3m: withinClusterQueue is Never, and it has the same priority",
				"held by b 2m: withinClusterQueue is Never, and it has the same priority",
				"held by a 1m: withinClusterQueue is Never, and it has the same priority", "would fit after c"},
		},
		"of a higher priority, no setting of the queue is named: none would help": {
			given: []Event{queueOf("q", "", 4), holds("low", "q", 1, 0), holds("high", "q", 3, 9), job("x", "q", 1, 2, 5, 0)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 2m free 0 missing 2m <- nearest",
				"held by high 3m: its priority 9 is above 5", "held by low 1m: withinClusterQueue is Never",
				"would fit after high"},
		},
		"workloads that it may preempt, and others that it may not": {
			given: []Event{evicting(queueOf("q", "", 4), within(preempt.LowerPriority)),
				holds("low", "q", 2, 0), holds("high", "q", 2, 9), job("x", "q", 1, 2, 5, 0)},
			want: []string{"Waiting WaitingForPreemptedWorkloads 1/1",
				"flavor default FitsByPreemption cpu asked 2m free 0 missing 2m <- nearest",
				"held by high 2m: withinClusterQueue is LowerPriority, and its priority 9 is not below 5", "held by low 2m: ",
				"would preempt low InClusterQueue", "would fit after high"},
		},
		"a workload within its queue's own quota is not preempted, and one outside the shortage is not named": {
			given: []Event{evicting(queueOf("q", "lab", 1), preempt.Policy{Reclaim: preempt.Any}),
				queueOf("r", "lab", 4), localOf("r"), holds("own", "r", 4, 0), queueOf("alone", "", 9), localOf("alone"),
				holds("stranger", "alone", 9, 0), job("x", "q", 1, 2, 0, 0)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 2m free 1m missing 1m <- nearest",
				"held by own 4m: within the quota of ClusterQueue r or its cohort", "would fit after own"},
		},
		"a borrower reclaims nothing": {
			given: []Event{evicting(queueOf("q", "lab", 4), preempt.Policy{Reclaim: preempt.Any}),
				queueOf("r", "lab", 0), localOf("r"), holds("mine", "q", 3, 0), holds("borrower", "r", 1, 0),
				job("x", "q", 1, 2, 0, 0)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 2m free 0 missing 2m <- nearest",
				"held by mine 3m: withinClusterQueue is Never, and it has the same priority",
				"held by borrower 1m: the workload would borrow, and borrowWithinCohort is Never", "would fit after mine"},
		},
		"a borrower that may preempt may not preempt all": {
			given: []Event{evicting(queueOf("q", "lab", 0),
				preempt.Policy{Reclaim: preempt.Any, WhileBorrowing: true, Threshold: new(int32(2))}),
				queueOf("r", "lab", 0), localOf("r"), queueOf("s", "lab", 1), localOf("s"), queueOf("lender", "lab", 9),
				holds("equal", "r", 4, 5), holds("above", "r", 3, 3), holds("low", "r", 1, 2), holds("partly", "s", 2, 0),
				job("x", "q", 1, 2, 5, 0)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 2m free 0 missing 2m <- nearest",
				"held by equal 4m: the workload would borrow, and borrowWithinCohort is LowerPriority: its priority 5 is not below 5",
				"held by above 3m: the workload would borrow, and its priority 3 is above maxPriorityThreshold 2",
				"held by partly 2m: not all of what it holds is borrowed by ClusterQueue s",
				"held by low 1m: ", "would fit after equal"},
		},
		"a workload that could never be admitted": {
			given: []Event{twoGroups, holds("a", "q", 4, 0), func() Event {
				w := job("x", "q", 1, 1, 0, 0)
				w.PodSets[0].PerPod["gpu"] = 3
				return w
			}()},
			want: []string{"Waiting ExceedsMaxQuota 1/1", "flavor default Short cpu asked 1m free 0 missing 1m <- nearest",
				"flavor gpus TooLarge gpu asked 3 free 2 missing 1 <- nearest"},
		},
		"a borrower reclaims nothing even if others of its queue are evicted for it": {
			given: []Event{evicting(queueOf("q", "lab", 3),
				preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.Any}), queueOf("r", "lab", 0), localOf("r"),
				holds("mine", "q", 1, 0), holds("kept", "q", 1, 9), holds("borrower", "r", 1, 9), job("x", "q", 1, 3, 5, 0)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 3m free 0 missing 3m <- nearest",
				"held by borrower 1m: the workload would borrow, and borrowWithinCohort is Never",
				"held by kept 1m: withinClusterQueue is LowerPriority, and its priority 9 is not below 5",
				"held by mine 1m: ", "would fit after borrower", "would fit after kept", "would fit after mine"},
		},
		"an elastic job shrinks to its minimum for an equal priority": {
			given: []Event{queueOf("q", "", 4), elasticHolder("tune", 2, 3, 0), holds("eval", "q", 1, 0),
				job("x", "q", 4, 1, 0, 1)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 4m free 0 missing 4m <- nearest",
				"held by tune 3m: it is elastic, and can only shrink by 1",
				"held by eval 1m: withinClusterQueue is Never, and it has the same priority", "would fit after tune",
				"would fit after eval"},
		},
		"an elastic job is evicted for a higher priority": {
			given: []Event{queueOf("q", "", 4), elasticHolder("tune", 2, 3, 0), holds("eval", "q", 1, 0),
				job("x", "q", 4, 1, 1, 1)},
			want: []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 4m free 0 missing 4m <- nearest",
				"held by tune 3m: ", "held by eval 1m: withinClusterQueue is Never", "would fit after tune",
				"would fit after eval"},
		},
		"an inadmissible workload has no holders": {
			given: []Event{evicting(queueOf("q", "", 4), within(preempt.LowerPriority)), holds("low", "q", 2, 0),
				holds("high", "q", 2, 9), refused},
			want: []string{"Aside Inadmissible 0/0", "flavor default Short cpu asked 2m free 0 missing 2m <- nearest"},
		},
		"evicted workloads are awaited": {
			given: []Event{queueOf("q", "", 4), evicted(holds("a", "q", 4, 0)), job("x", "q", 1, 2, 0, 0)},
			want: []string{"Waiting WaitingForPreemptedWorkloads 1/1",
				"flavor default FitsAfterEvicted cpu asked 2m free 0 missing 2m <- nearest",
				"held by a 4m: is already being evicted"},
		},
		"a workload behind the head of a strict queue": {
			given: []Event{strict(queueOf("q", "", 4)), holds("a", "q", 3, 0), job("big", "q", 1, 4, 0, 0),
				job("x", "q", 1, 1, 0, 1)},
			want: []string{"Waiting WaitingForQuota 2/2",
				"flavor default Fits cpu asked 1m free 1m missing 0 <- nearest", "behind big"},
		},
		"a workload that exceeds all quota has no holders": {
			given: []Event{queueOf("q", "", 4), holds("a", "q", 3, 0), job("x", "q", 1, 5, 0, 0)},
			want:  []string{"Waiting ExceedsMaxQuota 1/1", "flavor default TooLarge cpu asked 5m free 1m missing 4m <- nearest"},
		},
		"a stopped queue still shows what would fit": {
			given: []Event{stoppedQueue(queueOf("q", "", 4)), job("x", "q", 1, 1, 0, 0)},
			want:  []string{"Aside OnHold 0/0", "flavor default Fits cpu asked 1m free 4m missing 0 <- nearest"},
		},
		"a deactivated workload has no position": {
			given: []Event{queueOf("q", "", 4), inactive},
			want:  []string{"Aside Deactivated 0/0", "flavor default Fits cpu asked 1m free 4m missing 0 <- nearest"},
		},
		"an admitted workload": {
			given: []Event{queueOf("q", "", 4), holds("x", "q", 3, 0)},
			want:  []string{"Admitted  0/0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			for _, ev := range append([]Event{defaultFlavor, FlavorSet{Flavor{Name: "gpus"}}, localOf("q")}, tc.given...) {
				e.Apply(ev)
			}
			e.Arrange(epoch)
			x, ok := e.Explain(Key{Namespace: "ns", Name: "x"})
			if !ok {
				t.Fatal("the engine does not know the workload")
			}
			if diff := cmp.Diff(tc.want, summary(x)); diff != "" {
				t.Errorf("explanation differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainBeforeTheQueueWasEvaluated(t *testing.T) {
	e := New(Options{})
	for _, ev := range []Event{defaultFlavor, localOf("q"), job("x", "q", 1, 1, 0, 0), queueOf("q", "", 4)} {
		e.Apply(ev)
	}
	x, _ := e.Explain(Key{Namespace: "ns", Name: "x"})
	if x.Code != reason.PendingEvaluation || !strings.Contains(x.Message, "queue has changed") {
		t.Errorf("explained as %s: %s, want PendingEvaluation because the queue has changed", x.Code, x.Message)
	}
	if _, ok := e.Explain(Key{Namespace: "ns", Name: "nobody"}); ok {
		t.Error("got an explanation of a workload that does not exist")
	}
}

// TestExplainOfANomination: the explanation of a workload that waits for evicted workloads names them, and does not
// count the nomination against the workload itself.
func TestExplainOfANomination(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor,
		evicting(queueOf("q", "", 4), preempt.Policy{WithinQueue: preempt.LowerPriority}), localOf("q"),
		holds("low", "q", 4, 0), job("x", "q", 1, 3, 5, 0))
	x, _ := e.Explain(Key{Namespace: "ns", Name: "x"})
	want := []string{"Promised WaitingForPreemptedWorkloads 1/1",
		"flavor default FitsAfterEvicted cpu asked 3m free 0 missing 3m <- nearest",
		"held by low 4m: is already being evicted"}
	if diff := cmp.Diff(want, summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]reason.Name{{Namespace: "ns", Name: "low"}}, x.Awaits); diff != "" {
		t.Errorf("awaits differ (-want +got):\n%s", diff)
	}
	if low, _ := e.Explain(Key{Namespace: "ns", Name: "low"}); low.State != reason.Leaving {
		t.Errorf("state of the victim = %s, want Leaving", low.State)
	}
}

// TestNominationIsExplainedByItsFlavor: a workload waits for the flavor that is nominated for it, although another one
// fits now.
func TestNominationIsExplainedByItsFlavor(t *testing.T) {
	q := evicting(queueOf("q", "", 2), lower)
	q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"default", "spot"}}}
	q.Quotas[quota.FlavorResource{Flavor: "spot", Resource: "cpu"}] = quota.Limits{Nominal: 2, Borrowing: quota.Unlimited,
		Lending: quota.Unlimited}
	s := newScene(t, Options{}, FlavorSet{Flavor{Name: "spot"}}, q, localOf("q"), job("other", "q", 1, 2, 9, 0),
		job("low", "q", 1, 2, 0, 1))
	s.want("the preemptor arrives", s.happens(job("x", "q", 1, 2, 5, 2)), "evict low for x: in queue",
		"x waits: WaitingForPreemptedWorkloads")
	s.want("the other flavor becomes free", s.happens(gone("other")))
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	want := []string{"Promised WaitingForPreemptedWorkloads 1/1", "flavor default Fits cpu asked 2m free 2m missing 0",
		"flavor spot FitsAfterEvicted cpu asked 2m free 0 missing 2m <- nearest", "held by low 2m: is already being evicted"}
	if diff := cmp.Diff(want, summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
	if !strings.Contains(x.Message, "Pending the preemption of 1 workload(s)") {
		t.Errorf("message = %q, want one that says what it waits for", x.Message)
	}
}

// TestNominationOnNodesIsExplainedByItsSize: the place of one pod is nominated for a workload. Quota for all of them
// becomes free, and as no nodes could hold so many, it would be given them by quota alone; it waits for what is
// nominated for it.
func TestNominationOnNodesIsExplainedByItsSize(t *testing.T) {
	q := evicting(queueOf("q", "", 13), lower)
	q.OnDemand = true
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("b1", "b", 5),
		job("low", "q", 1, 4, 0, 0), job("other", "q", 1, 5, 9, 1)})...)
	s.want("the preemptor arrives", s.happens(smaller(job("x", "q", 3, 3, 5, 2), 1)), "evict low for x: in queue",
		"x waits: WaitingForPreemptedWorkloads")
	s.want("another one ends, and its node is removed", s.happens(gone("other"), NodeDeleted{Name: "b1"}))
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	if x.State != reason.Promised || x.Code != reason.WaitingForPreemptedWorkloads {
		t.Errorf("explained as %s %s: %s, want it to wait for what it was promised", x.State, x.Code, x.Message)
	}
}

// TestWorkloadProtectedByFairSharingIsNotPreemptable: the rules of priority would allow evicting it, but not the
// shares; others are shown as preemptable.
func TestWorkloadProtectedByFairSharingIsNotPreemptable(t *testing.T) {
	any := preempt.Policy{Reclaim: preempt.Any}
	of := func(name string, w quota.Weight) ClusterQueueSet {
		return weighing(evicting(queueOf(name, "lab", 1), any), w)
	}
	s := newScene(t, bothStrategies, of("poor", quota.One), localOf("poor"), of("rich", quota.One), localOf("rich"),
		of("none", 0), localOf("none"), queueOf("spare", "lab", 3), job("n", "none", 1, 1, 0, 0),
		job("p", "poor", 3, 1, 0, 1), job("r", "rich", 2, 1, 0, 2))
	s.want("a workload of a queue without usage arrives", s.happens(job("x", "none", 1, 1, 0, 3)),
		"x waits: WaitingForQuota")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	want := []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 1m free 0 missing 1m <- nearest",
		"held by p 3m: by fair sharing, the share of none with the workload must be less than that of poor",
		"held by r 2m: by fair sharing, the share of none with the workload must be less than that of rich",
		"held by n 1m: withinClusterQueue is Never, and it has the same priority",
		"would fit after p"}
	if diff := cmp.Diff(want, summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// TestPartialAdmissionIsExplainedByTheFewestPods: a job whose full size exceeds all quota is explained by its minimum.
func TestPartialAdmissionIsExplainedByTheFewestPods(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("a", "q", 3, 1, 0, 0))
	s.want("nothing can start", s.happens(smaller(job("x", "q", 6, 1, 0, 1), 2)), "x waits: WaitingForQuota")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	want := []string{"Waiting WaitingForQuota 1/1", "flavor default Short cpu asked 2m free 1m missing 1m <- nearest",
		"held by a 3m: withinClusterQueue is Never, and it has the same priority", "would fit after a"}
	if diff := cmp.Diff(want, summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// TestPossiblePartialAdmissionIsExplainedByItsSize: a job whose full size exceeds all quota is explained by the size at
// which it would be admitted.
func TestPossiblePartialAdmissionIsExplainedByItsSize(t *testing.T) {
	s := newScene(t, Options{}, stoppedQueue(queueOf("q", "", 4)), localOf("q"))
	s.want("its queue is stopped", s.happens(smaller(job("x", "q", 6, 1, 0, 1), 2)), "x waits: OnHold")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	if diff := cmp.Diff([]string{"Aside OnHold 0/0", "flavor default Fits cpu asked 4m free 4m missing 0 <- nearest"},
		summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// TestNominatedPartialAdmissionIsExplainedByItsSize: a job for which others are evicted at a reduced size is explained
// by that size.
func TestNominatedPartialAdmissionIsExplainedByItsSize(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("low", "q", 4, 1, 0, 0))
	s.want("the preemptor arrives", s.happens(smaller(job("x", "q", 6, 1, 5, 1), 2)), "evict low for x: in queue",
		"x waits: WaitingForPreemptedWorkloads")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	want := []string{"Promised WaitingForPreemptedWorkloads 1/1",
		"flavor default FitsAfterEvicted cpu asked 4m free 0 missing 4m <- nearest",
		"held by low 4m: is already being evicted"}
	if diff := cmp.Diff(want, summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// TestNominationThatWaitsForReadyPodsIsExplainedAsReported: less is nominated for a workload than it requests, and that
// is available; it waits for ready pods.
func TestNominationThatWaitsForReadyPodsIsExplainedAsReported(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockQueue}, evicting(queueOf("q", "", 4), lower), localOf("q"))
	ready := func(name string, is bool) Event { return s.changed(name, func(w *Workload) { w.Ready = is }) }
	for _, name := range []string{"low", "other"} {
		s.happens(job(name, "q", 2, 1, map[string]int32{"low": 0, "other": 5}[name], 0))
		s.happens(ready(name, true))
	}
	s.want("the preemptor arrives", s.happens(smaller(job("high", "q", 3, 1, 1, 1), 1)), "evict low for high: in queue",
		"high waits: WaitingForPreemptedWorkloads")
	s.want("a pod of another workload fails, then the victim's pods are gone",
		s.happens(ready("other", false), s.stopped("low")), "high waits: WaitingForPodsReady",
		"low waits: WaitingForPodsReady")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "high"})
	if x.Code != reason.WaitingForPodsReady ||
		x.Message != "waiting for all admitted workloads of ClusterQueue q to be in PodsReady condition" {
		t.Errorf("explained as %s: %s, want the reported reason", x.Code, x.Message)
	}
	if diff := cmp.Diff([]reason.Name{{Namespace: "ns", Name: "other"}}, x.Unready); diff != "" {
		t.Errorf("workloads with unready pods (-want +got):\n%s", diff)
	}
}

// TestWorkloadBehindAnotherOfItsKindIsExplainedAsThatOne: the first of two workloads that ask for the same was evicted
// for the one that it could reclaim its quota from now, so that it must not. The second is admitted no earlier than the
// first, although nothing bars it from that.
func TestWorkloadBehindAnotherOfItsKindIsExplainedAsThatOne(t *testing.T) {
	reclaims := evicting(queueOf("p", "lab", 2), preempt.Policy{Reclaim: preempt.Any})
	borrows := evicting(queueOf("r", "lab", 0), preempt.Policy{Reclaim: preempt.LowerPriority, WhileBorrowing: true})
	s := newScene(t, Options{}, reclaims, localOf("p"), borrows, localOf("r"), queueOf("q", "lab", 1), localOf("q"),
		job("large", "p", 1, 2, 5, 0), job("first", "p", 1, 1, 0, 1))
	s.want("a second one and a borrower of higher priority arrive",
		s.happens(job("second", "p", 1, 1, 0, 2), job("borrower", "r", 1, 1, 1, 3)),
		"evict first for borrower: while borrowing", "second waits: WaitingForQuota",
		"borrower waits: WaitingForPreemptedWorkloads")
	s.want("the first is gone", s.happens(s.stopped("first")), "admit borrower in r", "first waits: WaitingForQuota")
	s.want("what becomes free is taken by others",
		s.happens(gone("large"), job("urgent", "p", 1, 1, 5, 4), job("owner", "q", 1, 1, 5, 5)), "admit urgent in p",
		"admit owner in q")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "second"})
	want := []string{"Waiting WaitingForQuota 2/2", "flavor default Short cpu asked 1m free 0 missing 1m <- nearest",
		"held by borrower 1m: an earlier workload that asks for the same was evicted for it before, and does not take that back",
		"held by owner 1m: within the quota of ClusterQueue q or its cohort", "held by urgent 1m: its priority 5 is above 0",
		"would fit after borrower"}
	if diff := cmp.Diff(want, summary(x)); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// TestExplainChangesNoDecision: explanations at any time change no decision, and agree with the decisions where only
// one resource can be short.
func TestExplainChangesNoDecision(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.decide()
		explained := w.newEngine()
		var again []Decision
		for i, entry := range w.log {
			if entry.event != nil {
				explained.Apply(entry.event)
			} else {
				again = append(again, decideAll(explained, entry.decidedAt)...)
			}
			for n, key := range slices.SortedFunc(maps.Keys(explained.workloads), order.CompareKeys) {
				if n%7 == i%7 { // explaining all of them would take too long
					explained.Explain(key)
				}
			}
		}
		if diff := cmp.Diff(w.decided, again); diff != "" {
			t.Fatalf("explanations changed decisions (-without explanations +with):\n%s", diff)
		}
		for key, job := range explained.workloads {
			x, _ := explained.Explain(key)
			if explained.Busy() || (x.State == reason.Waiting) != (job.Class != nil) {
				continue
			}
			fits := strings.HasPrefix(x.Message, "it fits now")
			if fits || len(x.WouldPreempt) > 0 && x.Code == reason.WaitingForPreemptedWorkloads {
				t.Fatalf("%s waits after a pass, but the explanation is %+v", key, x)
			}
			switch {
			case w.wide != nil || w.nodes != nil || w.elastic:
				continue // with several shortages, the first one found was reported
			case x.Code == reason.WaitingForPodsReady:
				continue // the reported shortage is that of its last evaluation
			}
			if x.Behind == nil && x.Code.IsNews(job.Why.Code) {
				t.Fatalf("%s has the reported reason %s, but is explained as %s: %s", key, job.Why.Code, x.Code, x.Message)
			}
		}
	})
}

// TestAnExplanationKnowsWhatIsAboutToGrow: the free quota is kept for a running job of higher priority until it has
// grown into it. That depends on the time.
func TestAnExplanationKnowsWhatIsAboutToGrow(t *testing.T) {
	e := New(Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}})
	grows := elasticHolder("grows", 2, 3, 5)
	grows.ReservedAt = epoch
	for _, ev := range []Event{defaultFlavor, localOf("q"), queueOf("q", "", 6), grows, job("x", "q", 3, 1, 0, 1)} {
		e.Apply(ev)
	}
	e.Arrange(epoch.Add(time.Second))
	if x, _ := e.Explain(Key{Namespace: "ns", Name: "x"}); x.Code != reason.WaitingForQuota ||
		!strings.Contains(x.Message, "about to grow") {
		t.Errorf("x waits for %s: %s, want it to wait until the other has grown", x.Code, x.Message)
	}
}
