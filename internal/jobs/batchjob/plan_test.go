package batchjob

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
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
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		writes    []string
		events    []string
		unheld    bool
	}{
		"a Job that waits suspended is left alone": {newJob(2), waiting, nil, nil, false},
		"one that nobody held is stopped and counted": {newJob(2).unheld(), waiting,
			[]string{"change: suspend=true parallelism=2 pool="}, nil, true},
		"one that its user resumed is stopped, and the user told": {newJob(2).resumed(), waiting,
			[]string{"change: suspend=true parallelism=2 pool="}, []string{resumeReverted}, false},
		"one that ran and has no quota any more is stopped without a word": {newJob(2).started(grant(2)), waiting,
			[]string{"change: suspend=true parallelism=2 pool=f"}, nil, false},

		"an admitted one is started where its quota is": {newJob(2), admitted(grant(2)),
			[]string{"change: suspend=false parallelism=2 pool=f"}, nil, false},
		"with as many pods as it was given": {newJob(4), admitted(grant(3)),
			[]string{"change: suspend=false parallelism=3 pool=f"}, nil, false},
		"fewer than its parallelism are enough where fewer are left to do": {newJob(4).pods(0, 0, 2), admitted(grant(2)),
			[]string{"change: suspend=false parallelism=4 pool=f"}, nil, false},
		"not before it is known where":                            {newJob(2), missing, nil, nil, false},
		"nor with what cannot be put together":                    {newJob(2), clashing, nil, nil, false},
		"nor before the Job controller knows that it was stopped": {newJob(2).stopped(), admitted(grant(2)), nil, nil, false},
		"nor while old pods end":                                  {newJob(2).stopped().acknowledged().terminating(1), admitted(grant(2)), nil, nil, false},
		"an API server that thinks it has started is told otherwise first": {newJob(2).stopped().acknowledged().startedAt(now), admitted(grant(2)),
			[]string{"start time cleared"}, nil, false},

		"one that runs is left alone":                       {newJob(2).started(grant(2)).pods(2, 2, 0), admitted(grant(2)), nil, nil, false},
		"though its flavor is gone":                         {newJob(2).started(grant(2)).pods(2, 2, 0), missing, nil, nil, false},
		"one that runs elsewhere than its quota is stopped": {newJob(2).unheld(), admitted(grant(2)), []string{"change: suspend=true parallelism=2 pool="}, nil, false},
		"one that its user suspended goes on, and the user is told": {newJob(2).started(grant(2)).stopped().pods(2, 0, 0), admitted(grant(2)),
			[]string{"change: suspend=false parallelism=2 pool=f"}, []string{suspendReverted}, false},
		"one that its user made larger is as large as its quota": {grown, admitted(grant(2)),
			[]string{"change: suspend=false parallelism=2 pool=f"},
			[]string{"Warning QueueDecides: spec.parallelism is 2 again: the Job has quota for as many pods; submit another Job for more"}, false},

		"an evicted one is stopped": {newJob(2).started(grant(2)).pods(2, 2, 0), stopping,
			[]string{"change: suspend=true parallelism=2 pool=f"}, nil, false},
		"and left alone while pods end":     {newJob(2).started(grant(2)).stopped().acknowledged().terminating(1), stopping, nil, nil, false},
		"also before they are known to end": {newJob(2).started(grant(2)).stopped(), stopping, nil, nil, false},
		"then it is as it was":              {newJob(2).started(grant(2)).stopped().acknowledged(), stopping, []string{"change: suspend=true parallelism=2 pool="}, nil, false},
		"with as many pods as it asked for": {newJob(4).started(grant(3)).stopped().acknowledged(), stopping, []string{"change: suspend=true parallelism=4 pool="}, nil, false},
		"one that never ran is left alone":  {newJob(2), stopping, nil, nil, false},

		"one that ended is left alone":                {newJob(2).started(grant(2)).is(batchv1.JobComplete, "m"), admitted(grant(2)), nil, nil, false},
		"also when its quota is taken back just then": {newJob(2).started(grant(2)).is(batchv1.JobFailed, "m"), stopping, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := look(t, tc.job.job, tc.admission)
			if diff := cmp.Diff(tc.writes, writes(p)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, events(p)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if p.StartedUnheld != tc.unheld {
				t.Errorf("counted as started unheld: %v, want %v", p.StartedUnheld, tc.unheld)
			}
		})
	}
}

// TestChangedJobIsNotStarted: while a Job is suspended, its user may make its pods ask for more than it has quota for.
func TestChangedJobIsNotStarted(t *testing.T) {
	granted := grant(2)
	granted.Template = newJob(2).job.Spec.Template.DeepCopy()
	larger := func(b builder) builder {
		b.job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("64")}
		return b.changed()
	}
	for name, tc := range map[string]struct {
		job    builder
		differ bool
	}{
		"one that is as it was":                      {newJob(2), false},
		"one that never ran":                         {larger(newJob(2)).acknowledged(), true},
		"one that its user stopped":                  {larger(newJob(2).started(granted).stopped().acknowledged()), true},
		"one that is stopped, and as it was started": {newJob(2).started(granted).stopped().acknowledged(), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := look(t, tc.job.job, admitted(granted))
			if p.Progress.Requeue != tc.differ || len(events(p)) > 0 && p.Progress.Active {
				t.Errorf("progress %+v", p.Progress)
			}
			if started := len(p.Writes) > 0; started == tc.differ {
				t.Errorf("it is started: %t", started)
			}
		})
	}
}

func TestJobChangedAndResumedAtOnceIsStopped(t *testing.T) {
	granted := grant(2)
	granted.Template = newJob(2).job.Spec.Template.DeepCopy()
	for name, larger := range map[string]bool{"as it was started": false, "with larger pods": true} {
		t.Run(name, func(t *testing.T) {
			running := newJob(2).started(granted)
			if larger {
				running.job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("64")}
			}
			p := look(t, running.job, admitted(granted))
			if stopped := len(p.Writes) == 1 && strings.Contains(writes(p)[0], "suspend=true"); stopped != larger {
				t.Errorf("it would %v", writes(p))
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
		"one that waits has no pods":                  {newJob(2), waiting, jobs.Progress{}},
		"one that nobody held may have some":          {newJob(2).unheld(), waiting, jobs.Progress{Active: true}},
		"one that runs has, though none are seen yet": {newJob(2).started(grant(2)), admitted(grant(2)), jobs.Progress{Active: true}},
		"a pod that has just succeeded, and is not counted yet, keeps it ready": {
			newJob(2).started(grant(2)).pods(1, 1, 0).uncounted("a"), admitted(grant(2)), jobs.Progress{Active: true, Ready: true}},
		"an index that failed for good is not waited for": {
			newJob(3).indexed().started(grant(3)).pods(2, 2, 0).failed("1"), admitted(grant(3)), jobs.Progress{Active: true, Ready: true, Reclaimable: main(1)}},
		"the others are": {newJob(3).indexed().started(grant(3)).pods(2, 1, 0).failed("1"), admitted(grant(3)), jobs.Progress{Active: true, Reclaimable: main(1)}},
		"it is not ready before all its pods are":   {newJob(2).started(grant(2)).pods(2, 1, 0), admitted(grant(2)), jobs.Progress{Active: true}},
		"it is once they are":                       {newJob(2).started(grant(2)).pods(2, 2, 0), admitted(grant(2)), jobs.Progress{Active: true, Ready: true}},
		"pods that succeeded are as good":           {newJob(2).completions(9).started(grant(2)).pods(1, 1, 1), admitted(grant(2)), jobs.Progress{Active: true, Ready: true}},
		"as many as it was given are enough":        {newJob(4).started(grant(2)).pods(2, 2, 0), admitted(grant(2)), jobs.Progress{Active: true, Ready: true}},
		"pods that it needs no more are given back": {newJob(4).started(grant(4)).pods(1, 1, 3), admitted(grant(4)), jobs.Progress{Active: true, Ready: true, Reclaimable: main(3)}},
		"none while others take their place":        {newJob(2).completions(9).started(grant(2)).pods(2, 2, 7), admitted(grant(2)), jobs.Progress{Active: true, Ready: true}},
		"one pod is never given back alone":         {newJob(1).completions(3).started(grant(1)).pods(0, 0, 3), admitted(grant(1)), jobs.Progress{Active: true, Ready: true}},
		"of some that it was given, it gives back what it needs no more": {
			newJob(10).started(grant(3)).pods(2, 2, 8), admitted(grant(3)), jobs.Progress{Active: true, Ready: true, Reclaimable: main(8)}},
		"one of them too": {
			newJob(4).started(grant(1)).pods(0, 0, 4), admitted(grant(1)), jobs.Progress{Active: true, Ready: true, Reclaimable: main(4)}},
		"though nothing while it needs all that it was given": {
			newJob(10).completions(100).started(grant(3)).pods(3, 3, 50), admitted(grant(3)), jobs.Progress{Active: true, Ready: true}},
		"nor before any pod has ended": {
			newJob(10).indexed().annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true").started(grant(3)).pods(3, 3, 0), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true}},
		"without completions none is made once one has succeeded": {
			newJob(10).withoutCompletions().started(grant(3)).pods(2, 2, 1), admitted(grant(3)), jobs.Progress{Active: true, Ready: true, Reclaimable: main(8)}},
		"where completions follow parallelism it needs no more than are left of fewer": {
			newJob(10).indexed().annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true").started(grant(3)).pods(2, 2, 1).completed("0"), admitted(grant(3)),
			jobs.Progress{Active: true, Ready: true, Reclaimable: main(8)}},
		"a stopped one has pods until the controller says so": {newJob(2).started(grant(2)).stopped(), stopping, jobs.Progress{Active: true}},
		"and keeps its quota until nothing of it is left":     {newJob(2).started(grant(2)).stopped().acknowledged(), stopping, jobs.Progress{Active: true}},
		"then it gives it back":                               {newJob(2).stopped().acknowledged(), stopping, jobs.Progress{}},
		"success is told with its message":                    {newJob(2).started(grant(2)).pods(0, 0, 2).is(batchv1.JobComplete, "Reached expected number of succeeded pods"), admitted(grant(2)), jobs.Progress{Reclaimable: main(2), Outcome: &jobs.Outcome{Succeeded: true, Message: "Reached expected number of succeeded pods"}}},
		"failure too":                                         {newJob(2).started(grant(2)).is(batchv1.JobFailed, "too often"), admitted(grant(2)), jobs.Progress{Outcome: &jobs.Outcome{Message: "too often"}}},
		"a Job that is about to fail still has its pods":      {newJob(2).started(grant(2)).pods(1, 1, 0).is(batchv1.JobFailureTarget, "m"), admitted(grant(2)), jobs.Progress{Active: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := look(t, tc.job.job, tc.admission).Progress
			if got.Reclaimable["main"] == 0 {
				got.Reclaimable = nil
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(jobs.Progress{}, "Lacking")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func main(count int32) map[string]int32 { return map[string]int32{"main": count} }

// placed returns a grant with places.
func placed(pods int32, places ...podspec.Place) jobs.PodSetAdmission {
	g := grant(pods)
	g.Places, g.Nodes = places, jobs.Nodes{}
	for _, name := range []string{"a", "b", "c"} {
		g.Nodes[name] = &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	}
	return g
}

func on(node string, count int32) podspec.Place {
	return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
}

func TestJobIsRestartedOnTheNodesOfARepair(t *testing.T) {
	moved := []string{"Warning Moved: " + movedMessage}
	for name, tc := range map[string]struct {
		had, has jobs.PodSetAdmission
		moves    bool
	}{
		"its template names one node, and it has another": {placed(2, on("a", 2)), placed(2, on("b", 2)), true},
		"its template names the nodes that it fills":      {placed(4, on("a", 2), on("b", 2)), placed(4, on("a", 2), on("c", 2)), true},
		"its pods are given their places one by one":      {placed(3, on("a", 2), on("b", 1)), placed(3, on("a", 2), on("c", 1)), false},
		"nothing changed":              {placed(2, on("a", 2)), placed(2, on("a", 2)), false},
		"nobody gives places any more": {placed(2, on("a", 2)), grant(2), false},
	} {
		t.Run(name, func(t *testing.T) {
			running := newJob(tc.had.Count).started(tc.had).pods(tc.had.Count, tc.had.Count, 0).job
			p := look(t, running, admitted(tc.has))
			if !tc.moves {
				if len(writes(p)) > 0 || len(events(p)) > 0 {
					t.Fatalf("writes %v, tells %v", writes(p), events(p))
				}
				return
			}
			if diff := cmp.Diff(moved, events(p)); diff != "" || len(p.Writes) != 1 {
				t.Fatalf("writes %v, events (-want +got):\n%s", writes(p), diff)
			}
			stopped := builder{p.Writes[0].Object().(*batchv1.Job).DeepCopy()}
			if p := look(t, stopped.job, admitted(tc.has)); len(p.Writes) > 0 {
				t.Fatalf("with pods: %v", writes(p))
			}
			p = look(t, stopped.pods(0, 0, 0).acknowledged().job, admitted(tc.has))
			if len(p.Writes) != 1 || len(events(p)) > 0 {
				t.Fatalf("writes %v, tells %v", writes(p), events(p))
			}
			again := p.Writes[0].Object().(*batchv1.Job)
			if *again.Spec.Suspend || !tc.has.Reaches(again.Spec.Template, 0, tc.has.Count) {
				t.Errorf("suspend %v, template %+v", *again.Spec.Suspend, again.Spec.Template.Spec)
			}
		})
	}
}

// TestNewJobStartsDespiteStatusUpdates: the Job controller reports its suspension at that time.
func TestNewJobStartsDespiteStatusUpdates(t *testing.T) {
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		despite   bool
	}{
		"one that has never run":           {newJob(2), admitted(grant(2)), true},
		"not one that may have had pods":   {newJob(2).stopped().acknowledged(), admitted(grant(2)), false},
		"nor one that gets other nodes":    {newJob(2).started(grant(2)).stopped().acknowledged(), admitted(grant(1)), false},
		"nor is one given back despite it": {newJob(2).started(grant(2)).stopped().acknowledged(), stopping, false},
	} {
		t.Run(name, func(t *testing.T) {
			writes := look(t, tc.job.job, tc.admission).Writes
			if len(writes) != 1 {
				t.Fatalf("%d writes", len(writes))
			}
			change := jobs.Change(tc.job.job, writes[0].Object().(*batchv1.Job))
			if tc.despite {
				change = change.DespiteStatus()
			}
			if told := writes[0].SuccessEvent(); told != nil {
				change = change.WithEvent(*told)
			}
			if !reflect.DeepEqual(writes[0], change) {
				t.Errorf("it is to be done despite the status: %v", !tc.despite)
			}
		})
	}
}
