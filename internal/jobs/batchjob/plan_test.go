package batchjob

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

func TestPlan(t *testing.T) {
	const (
		resumeReverted  = "Warning QueueDecides: spec.suspend is true again: the queue decides when this Job runs"
		suspendReverted = "Warning QueueDecides: spec.suspend is false again: the queue decides when this Job runs; to hold it, set spec.active of its Workload to false"
	)
	missing := admitted(grant(2))
	missing.MissingFlavor = "f"
	clashing := admitted(grant(2))
	clashing.Conflict = "a clash"
	grown := newJob(2).completions(8).started(grant(2))
	grown.job.Spec.Parallelism = ptr.To[int32](5)
	reclaimed := grant(4)
	reclaimed.Left = 1
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		writes    []string
		events    []string
		unheld    bool
	}{
		"waiting, suspended": {newJob(2), waiting, nil, nil, false},
		"waiting, created running": {newJob(2).unheld(), waiting,
			[]string{"change: suspend=true parallelism=2 pool="}, nil, true},
		"waiting, resumed by its user": {newJob(2).resumed(), waiting,
			[]string{"change: suspend=true parallelism=2 pool="}, []string{resumeReverted}, true},
		"waiting, started before": {newJob(2).started(grant(2)), waiting,
			[]string{"change: suspend=true parallelism=2 pool=f"}, nil, true},

		"admitted": {newJob(2), admitted(grant(2)),
			[]string{"change: suspend=false parallelism=2 pool=f"}, nil, false},
		"admitted with fewer pods": {newJob(4), admitted(grant(3)),
			[]string{"change: suspend=false parallelism=3 pool=f"}, nil, false},
		"admitted with as many pods as completions are left": {newJob(4).pods(0, 0, 2), admitted(grant(2)),
			[]string{"change: suspend=false parallelism=4 pool=f"}, nil, false},
		"admitted, flavor missing":             {newJob(2), missing, nil, nil, false},
		"admitted, conflicting node selectors": {newJob(2), clashing, nil, nil, false},
		"admitted, nothing to add": {newJob(2), admitted(jobs.PodSetAdmission{Count: 2, Left: 2}),
			[]string{"change: suspend=false parallelism=2 pool="}, nil, false},
		"admitted without pods, as it asked": {newJob(0), admitted(grant(0)),
			[]string{"change: suspend=false parallelism=0 pool=f"}, nil, false},
		"admitted, suspension not observed yet": {newJob(2).stopped(), admitted(grant(2)), nil, nil, false},
		"admitted, earlier pods terminating": {newJob(2).stopped().acknowledged().terminating(1), admitted(grant(2)),
			nil, nil, false},
		"admitted, with a start time, which makes the template immutable": {newJob(2).stopped().acknowledged().startedAt(now),
			admitted(grant(2)), []string{"start time cleared"}, nil, false},

		"running": {newJob(2).started(grant(2)).pods(2, 2, 0), admitted(grant(2)),
			nil, nil, false},
		"running, flavor missing": {newJob(2).started(grant(2)).pods(2, 2, 0), missing, nil, nil, false},
		"running on other nodes than admitted": {newJob(2).unheld(), admitted(grant(2)),
			[]string{"change: suspend=true parallelism=2 pool="}, nil, false},
		"running, suspended by its user": {newJob(2).started(grant(2)).stopped().pods(2, 0, 0), admitted(grant(2)),
			[]string{"change: suspend=false parallelism=2 pool=f"}, []string{suspendReverted}, false},
		"running, parallelism raised by its user": {grown, admitted(grant(2)),
			[]string{"change: suspend=false parallelism=2 pool=f"},
			[]string{"Warning QueueDecides: spec.parallelism is 2 again: the Job has quota for as many pods; submit another Job for more"}, false},
		"running, raised by its user when indexes are done": {newJob(4).indexed().started(grant(4)).pods(1, 1,
			3).completed("0-2").set(8, 8), admitted(reclaimed),
			[]string{"change: suspend=false parallelism=1 pool=f"},
			[]string{"Warning QueueDecides: spec.parallelism is 1 again: the Job has quota for as many pods; submit another Job for more"}, false},

		"evicted, running": {newJob(2).started(grant(2)).pods(2, 2, 0), stopping,
			[]string{"change: suspend=true parallelism=2 pool=f"}, nil, false},
		"evicted, pods terminating": {newJob(2).started(grant(2)).stopped().acknowledged().terminating(1),
			stopping, nil, nil, false},
		"evicted, suspension not observed yet": {newJob(2).started(grant(2)).stopped(), stopping, nil, nil, false},
		"evicted, stopped": {newJob(2).started(grant(2)).stopped().acknowledged(), stopping,
			[]string{"change: suspend=true parallelism=2 pool="}, nil, false},
		"evicted, stopped, admitted with fewer pods": {newJob(4).started(grant(3)).stopped().acknowledged(), stopping,
			[]string{"change: suspend=true parallelism=4 pool="}, nil, false},
		"evicted, never started": {newJob(2), stopping, nil, nil, false},

		"completed":          {newJob(2).started(grant(2)).is(batchv1.JobComplete, "m"), admitted(grant(2)), nil, nil, false},
		"failed and evicted": {newJob(2).started(grant(2)).is(batchv1.JobFailed, "m"), stopping, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.job.job, tc.admission)
			if diff := cmp.Diff(tc.writes, writes(p)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, events(p)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if p.StartedUnheld != tc.unheld {
				t.Errorf("StartedUnheld = %v, want %v", p.StartedUnheld, tc.unheld)
			}
		})
	}
}

// TestEveryStartOfAWaitingJobIsCounted, and once: where the status has to be changed before the Job can be stopped, the
// stop counts.
func TestEveryStartOfAWaitingJobIsCounted(t *testing.T) {
	again := newJob(2).started(grant(2)).stopped().acknowledged().resumed()
	first := checkedPlan(t, again.job, waiting)
	if got := first.Writes[0].Verb(); got != "change status of" || first.StartedUnheld {
		t.Errorf("first %q, counted: %t, want a change of the status that does not count", got, first.StartedUnheld)
	}
	again.job.Status.Conditions = nil
	if second := checkedPlan(t, again.job, waiting); !second.StartedUnheld {
		t.Error("a waiting Job that its user has resumed is not counted")
	}
	for name, admission := range map[string]jobs.Admission{"stopping": stopping, "admitted": admitted(grant(2))} {
		if p := checkedPlan(t, newJob(2).started(grant(2)).pods(2, 2, 0).job, admission); p.StartedUnheld {
			t.Errorf("a Job that the queue has started is counted while it is %s", name)
		}
	}
}

// TestAJobIsMarkedOnce as one that is queued, in the same write as its next change, or in a write of its own.
func TestAJobIsMarkedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		marked    bool
	}{
		"waiting":                      {newJob(2), waiting, true},
		"started by its user":          {newJob(2).unheld(), waiting, true},
		"about to start":               {newJob(2), admitted(grant(2)), true},
		"running":                      {newJob(2).started(grant(2)).pods(2, 2, 0), admitted(grant(2)), true},
		"being stopped":                {newJob(2).started(grant(2)).pods(2, 2, 0), stopping, true},
		"its status is changed first":  {newJob(2).started(grant(2)).acknowledged().pods(2, 2, 0), stopping, false},
		"ended":                        {newJob(2).started(grant(2)).is(batchv1.JobComplete, "m"), admitted(grant(2)), false},
		"marked as one that is nobody": {newJob(2).annotated(muster.QueuedAnnotation, muster.NotQueued), waiting, true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.job.job.Annotations[muster.QueuedAnnotation] == muster.QueuedItself {
				tc.job.unmarked()
			}
			p := checkedPlan(t, tc.job.job, tc.admission)
			marked := len(p.Writes) == 1 && p.Writes[0].Object().GetAnnotations()[muster.QueuedAnnotation] == muster.QueuedItself
			if marked != tc.marked {
				t.Fatalf("writes = %v, marked: %t, want %t", writes(p), marked, tc.marked)
			}
			if marked {
				done := p.Writes[0].Object().(*batchv1.Job)
				if again := checkedPlan(t, done, tc.admission); len(again.Writes) > 0 &&
					again.Writes[0].Object().GetAnnotations()[muster.QueuedAnnotation] != muster.QueuedItself {
					t.Error("the next plan removes the mark")
				}
			}
		})
	}
}

// TestChangedJobIsNotStarted: while a Job is suspended, its user may raise its pods' requests above its quota.
func TestChangedJobIsNotStarted(t *testing.T) {
	granted := grant(2)
	granted.Template = newJob(2).job.Spec.Template.DeepCopy()
	larger := func(b builder) builder {
		b.job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("64")}
		return b.changed()
	}
	for name, tc := range map[string]struct {
		job     builder
		changed bool
	}{
		"unchanged":                 {newJob(2), false},
		"larger, never started":     {larger(newJob(2)).acknowledged(), true},
		"larger, started before":    {larger(newJob(2).started(granted).stopped().acknowledged()), true},
		"unchanged, started before": {newJob(2).started(granted).stopped().acknowledged(), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.job.job, admitted(granted))
			if p.Progress.Requeue != tc.changed ||
				tc.changed && !slices.Equal(events(p), []string{"Warning QueueDecides: " + otherPodsMessage}) {
				t.Errorf("progress = %+v, events %v, want it requeued: %v", p.Progress, events(p), tc.changed)
			}
			if started := len(p.Writes) > 0; started == tc.changed {
				t.Errorf("started: %t, want %t", started, !tc.changed)
			}
		})
	}
}

func TestJobChangedAndResumedAtOnceIsStopped(t *testing.T) {
	granted := grant(2)
	granted.Template = newJob(2).job.Spec.Template.DeepCopy()
	for name, larger := range map[string]bool{"unchanged": false, "with larger pods": true} {
		t.Run(name, func(t *testing.T) {
			running := newJob(2).started(granted)
			if larger {
				running.job.Spec.Template.Spec.Containers[0].Resources.Requests =
					corev1.ResourceList{"cpu": resource.MustParse("64")}
			}
			p := checkedPlan(t, running.job, admitted(granted))
			if stopped := len(p.Writes) == 1 && strings.Contains(writes(p)[0], "suspend=true"); stopped != larger {
				t.Errorf("writes = %v, want it suspended: %v", writes(p), larger)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		want      jobs.Progress
	}{
		"waiting":                            {newJob(2), waiting, jobs.Progress{}},
		"waiting, created running":           {newJob(2).unheld(), waiting, jobs.Progress{Active: true}},
		"running, no pods in the status yet": {newJob(2).started(grant(2)), admitted(grant(2)), jobs.Progress{Active: true}},
		"a pod succeeded, not counted yet": {
			newJob(2).started(grant(2)).pods(1, 1, 0).uncounted("a"), admitted(grant(2)),
			jobs.Progress{Active: true, Ready: true}},
		"a failed index, the other pods ready": {
			newJob(3).indexed().started(grant(3)).pods(2, 2, 0).failed("1"), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(1)}},
		"a failed index, another pod not ready": {newJob(3).indexed().started(grant(3)).pods(2, 1, 0).failed("1"),
			admitted(grant(3)), jobs.Progress{Active: true, Reclaimable: main(1)}},
		"a pod not ready": {newJob(2).started(grant(2)).pods(2, 1, 0), admitted(grant(2)),
			jobs.Progress{Active: true}},
		"all pods ready": {newJob(2).started(grant(2)).pods(2, 2, 0), admitted(grant(2)),
			jobs.Progress{Active: true, Ready: true}},
		"a pod succeeded, more to come": {newJob(2).completions(9).started(grant(2)).pods(1, 1, 1), admitted(grant(2)),
			jobs.Progress{Active: true, Ready: true}},
		"all granted pods ready": {newJob(4).started(grant(2)).pods(2, 2, 0), admitted(grant(2)),
			jobs.Progress{Active: true, Ready: true}},
		"pods succeeded, no more to come": {newJob(4).started(grant(4)).pods(1, 1, 3), admitted(grant(4)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(3)}},
		"pods succeeded, replaced by others": {newJob(2).completions(9).started(grant(2)).pods(2, 2, 7), admitted(grant(2)),
			jobs.Progress{Active: true, Ready: true}},
		"parallelism 1": {newJob(1).completions(3).started(grant(1)).pods(0, 0, 3), admitted(grant(1)),
			jobs.Progress{Active: true, Ready: true}},
		"fewer pods granted, some not needed any more": {
			newJob(10).started(grant(3)).pods(2, 2, 8), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(8)}},
		"one pod granted, not needed any more": {
			newJob(4).started(grant(1)).pods(0, 0, 4), admitted(grant(1)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(4)}},
		"fewer pods granted, all needed": {
			newJob(10).completions(100).started(grant(3)).pods(3, 3, 50), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true}},
		"synced completions, none done": {
			newJob(10).indexed().annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true").started(grant(3)).pods(3, 3,
				0), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true}},
		"no completions, a pod succeeded": {
			newJob(10).withoutCompletions().started(grant(3)).pods(2, 2, 1), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(8)}},
		"synced completions, one done": {
			newJob(10).indexed().annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true").started(grant(3)).pods(2, 2,
				1).completed("0"), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(8)}},
		"stopped, suspension not observed yet": {newJob(2).started(grant(2)).stopped(), stopping,
			jobs.Progress{Active: true}},
		"stopped, not restored yet": {newJob(2).started(grant(2)).stopped().acknowledged(), stopping,
			jobs.Progress{Active: true}},
		"stopped and restored": {newJob(2).stopped().acknowledged(), stopping, jobs.Progress{}},
		"complete": {newJob(2).started(grant(2)).pods(0, 0, 2).is(batchv1.JobComplete,
			"Reached expected number of succeeded pods"), admitted(grant(2)), jobs.Progress{Reclaimable: main(2),
			Outcome: &jobs.Outcome{Succeeded: true, Message: "Reached expected number of succeeded pods"}}},
		"failed": {newJob(2).started(grant(2)).is(batchv1.JobFailed, "too often"),
			admitted(grant(2)), jobs.Progress{Outcome: &jobs.Outcome{Message: "too often"}}},
		"failed while it is being stopped": {newJob(2).started(grant(2)).stopped().is(batchv1.JobFailed, "too often"),
			stopping, jobs.Progress{Outcome: &jobs.Outcome{Message: "too often"}}},
		"FailureTarget, pods terminating": {newJob(2).started(grant(2)).pods(1, 1, 0).is(batchv1.JobFailureTarget, "m"),
			admitted(grant(2)), jobs.Progress{Active: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkedPlan(t, tc.job.job, tc.admission).Progress
			if got.Reclaimable["main"] == 0 {
				got.Reclaimable = nil
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(jobs.Progress{}, "Missing")); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// main returns a count for the pod set main.
func main(count int32) map[string]int32 { return map[string]int32{"main": count} }

// placed returns a grant with these places, on nodes that fit two pods each.
func placed(pods int32, places ...podspec.Place) jobs.PodSetAdmission {
	g := grant(pods)
	g.Places, g.Nodes = places, jobs.Nodes{}
	for _, name := range []string{"a", "b", "c"} {
		g.Nodes[name] = &corev1.Node{
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	}
	return g
}

// on returns a place for this many pods on the node.
func on(node string, count int32) podspec.Place {
	return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
}

// TestJobIsRestartedOnTheNodesOfARepair: a Job whose template selects nodes is suspended and started again if it gets
// others. Gated pods are placed one by one, so their Job is left alone.
func TestJobIsRestartedOnTheNodesOfARepair(t *testing.T) {
	moved := []string{"Warning Moved: " + movedMessage}
	for name, tc := range map[string]struct {
		before, after jobs.PodSetAdmission
		moved         bool
	}{
		"one node selected":      {placed(2, on("a", 2)), placed(2, on("b", 2)), true},
		"several nodes selected": {placed(4, on("a", 2), on("b", 2)), placed(4, on("a", 2), on("c", 2)), true},
		"gated pods":             {placed(3, on("a", 2), on("b", 1)), placed(3, on("a", 2), on("c", 1)), false},
		"no change":              {placed(2, on("a", 2)), placed(2, on("a", 2)), false},
		"no places any more":     {placed(2, on("a", 2)), grant(2), false},
	} {
		t.Run(name, func(t *testing.T) {
			running := newJob(tc.before.Count).started(tc.before).pods(tc.before.Count, tc.before.Count, 0).job
			p := checkedPlan(t, running, admitted(tc.after))
			if !tc.moved {
				if len(writes(p)) > 0 || len(events(p)) > 0 {
					t.Fatalf("writes %v, events %v, want none", writes(p), events(p))
				}
				return
			}
			if diff := cmp.Diff(moved, events(p)); diff != "" || len(p.Writes) != 1 {
				t.Fatalf("writes %v, want one; events (-want +got):\n%s", writes(p), diff)
			}
			stopped := builder{p.Writes[0].Object().(*batchv1.Job).DeepCopy()}
			if p := checkedPlan(t, stopped.job, admitted(tc.after)); len(p.Writes) > 0 {
				t.Fatalf("writes while the Job has pods: %v, want none", writes(p))
			}
			p = checkedPlan(t, stopped.pods(0, 0, 0).acknowledged().job, admitted(tc.after))
			if len(p.Writes) != 1 || len(events(p)) > 0 {
				t.Fatalf("writes %v, events %v, want one write and no events", writes(p), events(p))
			}
			again := p.Writes[0].Object().(*batchv1.Job)
			if *again.Spec.Suspend || !tc.after.All().Reached(again.Spec.Template) {
				t.Errorf("suspend %v, template %+v, want it started on the new nodes", *again.Spec.Suspend,
					again.Spec.Template.Spec)
			}
		})
	}
}

// TestNewJobStartsDespiteStatusUpdates: the Job controller reports the suspension of a new Job at the time of its
// start.
func TestNewJobStartsDespiteStatusUpdates(t *testing.T) {
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		want      bool
	}{
		"never started":     {newJob(2), admitted(grant(2)), true},
		"may have had pods": {newJob(2).stopped().acknowledged(), admitted(grant(2)), false},
		"started before":    {newJob(2).started(grant(2)).stopped().acknowledged(), admitted(grant(1)), false},
		"stopping":          {newJob(2).started(grant(2)).stopped().acknowledged(), stopping, false},
	} {
		t.Run(name, func(t *testing.T) {
			writes := checkedPlan(t, tc.job.job, tc.admission).Writes
			if len(writes) != 1 {
				t.Fatalf("%d writes, want 1", len(writes))
			}
			change := write.Change(tc.job.job, writes[0].Object().(*batchv1.Job))
			if tc.want {
				change = change.DespiteStatus()
			}
			if event := writes[0].SuccessEvent(); event != nil {
				change = change.WithEvent(*event)
			}
			if !reflect.DeepEqual(writes[0], change) {
				t.Errorf("the change is made despite status updates: %v, want %v", !tc.want, tc.want)
			}
		})
	}
}

// TestStopBeforeTheStartIsObserved: when a Job is evicted just after its start, its status may still say that it is
// suspended and has no pods, while the Job controller creates some. That must not count as the answer to the stop.
func TestStopBeforeTheStartIsObserved(t *testing.T) {
	b := newJob(2).acknowledged().started(grant(2))
	for step := 0; !suspended(b.job); step++ {
		p := checkedPlan(t, b.job, stopping)
		if len(p.Writes) != 1 || !p.Progress.Active || step > 1 {
			t.Fatalf("step %d: writes %v, active %t, want one write at a time until the Job is suspended", step, writes(p),
				p.Progress.Active)
		}
		b = builder{p.Writes[0].Object().(*batchv1.Job).DeepCopy()}
	}
	if p := checkedPlan(t, b.changed().job, stopping); len(p.Writes) > 0 || !p.Progress.Active {
		t.Errorf("before the Job controller has answered: writes %v, active %t, want none and true", writes(p),
			p.Progress.Active)
	}
	if p := checkedPlan(t, b.acknowledged().job, stopping); len(p.Writes) != 1 {
		t.Errorf("after that: writes %v, want the Job restored", writes(p))
	}
}
