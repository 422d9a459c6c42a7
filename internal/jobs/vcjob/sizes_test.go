package vcjob

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestDescribeAsksForTheLeastThatMustRunTogether(t *testing.T) {
	least := func(n int32) func(*volcano.TaskSpec) {
		return func(task *volcano.TaskSpec) { task.MinAvailable = ptr.To(n) }
	}
	for _, c := range []struct {
		name string
		job  jobBuilder
		want string
	}{
		{"all", twoTasks(), "ps 1, worker 2"},
		{"a task's own", newJob().with("ps", 1).with("worker", 4, least(2)), "ps 1, worker 4 of 2"},
		{"the job's, from the first tasks", newJob().with("ps", 1).with("worker", 4).needs(3), "ps 1, worker 4 of 2"},
		{"the tasks' before the rest of the job's", newJob().with("a", 4).with("b", 4, least(2)).needs(5),
			"a 4 of 3, b 4 of 2"},
		{"a task without pods", newJob().with("ps", 0).with("worker", 2), "worker 2"},
		{"the annotations'", newJob().with("ps", 1).with("worker", 3, between("2", "4")), "ps 1, worker 4 of 2"},
		{"the annotation's, whatever the job says", newJob().with("worker", 4, between("2", "")).needs(4), "worker 4 of 2"},
		{"the annotations', and the rest of the job's of others",
			newJob().with("a", 2).with("worker", 3, between("1", "4")).with("b", 2).needs(4), "a 2, worker 4 of 1, b 2 of 1"},
		{"a task of which none must run counts with one", newJob().with("ps", 1).with("worker", 2).needs(1),
			"ps 1, worker 2 of 1"},
	} {
		var parts []string
		elastic := 0
		for _, set := range describe(c.job.Job, jobs.Facts{}).PodSets {
			if set.Template.Annotations[muster.MinReplicasAnnotation] != "" {
				elastic++
			}
			part := fmt.Sprintf("%s %d", set.Name, set.Count)
			if set.MinCount != nil {
				part += fmt.Sprintf(" of %d", *set.MinCount)
			}
			parts = append(parts, part)
		}
		if got := strings.Join(parts, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		want := strings.Count(c.want, " of ")
		if annotatedTask(c.job.Job) >= 0 {
			want = 1
		}
		if elastic != want && (want < 2 || elastic != 0) {
			t.Errorf("%s: %d tasks are elastic", c.name, elastic)
		}
	}
}

// A task that had no pods when the job was admitted has no room, however many it asks for later.
func TestATaskWithoutQuotaGetsNoPods(t *testing.T) {
	job := newJob().with("ps", 1).with("worker", 0).is(volcano.Running)
	for _, set := range describe(job.Job, jobs.Facts{}).PodSets {
		if set.Name == "worker" {
			t.Fatal("a task without pods asks for some")
		}
	}
	job.Spec.Tasks[1].Replicas = 999
	same(t, "writes", []string{"create job-ps-0"}, writes(see(t, job.Job, admitted("ps", 1), nil)))
	same(t, "those that were made before", []string{"delete job-worker-7"},
		writes(see(t, job.Job, admitted("ps", 1), of(pod("job-ps-0").running(), pod("job-worker-7").running()))))
	if got := writes(see(t, job.Job, jobs.Admission{Grant: jobs.Unqueued}, nil)); len(got) != 1000 {
		t.Errorf("%d pods of a job that no queue holds, want 1000", len(got))
	}
}

// between has the template of a task say between how many pods it may run.
func between(least, most string) func(*volcano.TaskSpec) {
	return func(task *volcano.TaskSpec) {
		task.Template.Annotations = map[string]string{}
		if least != "" {
			task.Template.Annotations[muster.MinReplicasAnnotation] = least
		}
		if most != "" {
			task.Template.Annotations[muster.MaxReplicasAnnotation] = most
		}
	}
}

// TestAnnotationsBoundTheTaskSize: the pods of a task that may be resized are as many as it may
// have at most, and so many must run for the job to.
func TestAnnotationsBoundTheTaskSize(t *testing.T) {
	job := newJob().with("ps", 1).with("worker", 3, between("2", "4")).Job
	if total, least := totalOf(job), minAvailable(job); total != 5 || least != 3 {
		t.Errorf("%d pods of which %d must run, want 5 and 3", total, least)
	}
	job.Spec.MinAvailable = 4
	if least := minAvailable(job); least != 3 {
		t.Errorf("%d must run whatever minAvailable says, want 3", least)
	}
}

// TestNoJobIsPlannedBeyondItsLargestSize: a job that the API never refused, because it was stored before
// there was a rule, takes no more memory than the largest job does, and says what is wrong with its size.
func TestNoJobIsPlannedBeyondItsLargestSize(t *testing.T) {
	const huge = math.MaxInt32
	for name, c := range map[string]struct {
		job  jobBuilder
		pods int
		want string
	}{
		"the largest": {newJob().with("ps", 1).with("worker", 4,
			between("1", "9999")), mostPods, ""},
		"a maximum without end": {newJob().with("worker", 1, between("1", "2147483647")), 1,
			"of task worker must be numbers up to 10000"},
		"a maximum beyond the largest": {newJob().with("worker", 1, between("1", "10001")), 1,
			"of task worker must be numbers up to 10000"},
		"a maximum that fits not quite": {newJob().with("worker", 4, between("1", "10000")).with("ps", 2),
			mostPods, "must be at most 10000 together, and are 10002"},
		"replicas without end": {newJob().with("worker", huge), mostPods,
			"must be at most 10000 together, and are 2147483647"},
		"a sum that overflows": {newJob().with("a", huge).with("b", huge).with("c", 3), mostPods,
			"and are 4294967297"},
		"a negative number": {newJob().with("ps", 1).with("worker", -2), 1,
			"replicas of task worker must not be negative, and are -2"},
		"a negative number that makes the sum small": {newJob().with("ps", huge).with("worker", -huge), mostPods,
			"of task worker must not be negative"},
	} {
		d := describe(c.job.Job, jobs.Facts{})
		if (d.Mistake == nil) != (c.want == "") || d.Mistake != nil && !strings.Contains(d.Mistake.Message, c.want) {
			t.Errorf("%s: told %v, want %q", name, d.Mistake, c.want)
		}
		asked := 0
		for _, set := range d.PodSets {
			asked += int(set.Count)
		}
		if asked != c.pods {
			t.Errorf("%s: asks for %d pods, want %d", name, asked, c.pods)
		}
		seen := jobs.Seen[*volcano.Job]{Job: c.job.Job, Admission: waiting, Now: now}
		if roster := newPlanner(seen).roster; len(roster.Replicas) != c.pods {
			t.Errorf("%s: planned with %d replicas, want %d", name, len(roster.Replicas), c.pods)
		}
		if p := plan(seen); !equality.Semantic.DeepEqual(p.Status.(*volcano.Job).Spec, c.job.Spec) {
			t.Errorf("%s: the status write changes the spec", name)
		}
	}
}

// TestATooLargeJobThatRunsKeepsItsPods: those of the other tasks too, whose room its elastic task could take.
func TestATooLargeJobThatRunsKeepsItsPods(t *testing.T) {
	job := newJob().with("worker", 1, between("1", "10000")).with("ps", 1).is(volcano.Running)
	same(t, "writes", nil, writes(see(t, job.Job, admitted("worker", 2, "ps", 1),
		of(pod("job-worker-0").running(), pod("job-worker-1").running(), pod("job-ps-0").running()))))
}

func TestNoTaskIsElasticIfTwoCouldBe(t *testing.T) {
	asks := func(task *volcano.TaskSpec) { task.MinAvailable = ptr.To[int32](2) }
	for _, set := range describe(newJob().with("a", 4, asks).with("b", 4, asks).Job, jobs.Facts{}).PodSets {
		if least, isSet := set.Template.Annotations[muster.MinReplicasAnnotation]; isSet {
			t.Errorf("task %s is elastic from %s on, and is never resized", set.Name, least)
		}
	}
}

// TestATaskKeepsBeingResizedAfterItsJobAsksForAFixedSize: the queue waits for the pods of a shrink until it is told
// that they are gone.
func TestATaskKeepsBeingResizedAfterItsJobAsksForAFixedSize(t *testing.T) {
	was := newJob().with("ps", 1).with("worker", 4).needs(3)
	admission := admitted("ps", 1, "worker", 3)
	for _, set := range describe(was.Job, jobs.Facts{}).PodSets {
		granted := admission.PodSets[string(set.Name)]
		granted.Template, granted.Asked = &set.Template, set.Count
		admission.PodSets[string(set.Name)] = granted
	}
	up := func(name string) podBuilder {
		b := pod(name).running()
		b.Status.Conditions = append(b.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		return b
	}
	pods := of(up("job-ps-0"), up("job-worker-0"), up("job-worker-1"), up("job-worker-2").going())

	lowered := newJob().with("ps", 1).with("worker", 2).needs(3).is(volcano.Running)
	progress := see(t, lowered.Job, admission, pods).Progress
	same(t, "in use while one terminates", map[string]int32{"worker": 3}, progress.Pods)
	progress = see(t, lowered.Job, admission, pods[:3]).Progress
	same(t, "in use", map[string]int32{"worker": 2}, progress.Pods)
	if !progress.Ready {
		t.Error("it is not ready with all that it asks for")
	}

	fixed := newJob().with("ps", 1).with("worker", 4).needs(5).is(volcano.Running)
	progress = see(t, fixed.Job, admission, pods[:3]).Progress
	same(t, "in use with a minimum that was raised", map[string]int32{"worker": 2}, progress.Pods)
	if !progress.Ready {
		t.Error("it is not ready with the minimum that it was admitted with, while it grows")
	}
}

// TestPodsBeyondALoweredTaskUseQuotaUntilTheyAreGone: they are none of its replicas any more.
func TestPodsBeyondALoweredTaskUseQuotaUntilTheyAreGone(t *testing.T) {
	job := newJob().with("worker", 3).needs(2).is(volcano.Running)
	pods := of(pod("job-worker-0").running(), pod("job-worker-1").running(), pod("job-worker-2").running(),
		pod("job-worker-3").running().going())
	same(t, "in use", map[string]int32{"worker": 4}, see(t, job.Job, admitted("worker", 4), pods).Progress.Pods)
}

// TestAnEndedJobWantsNoMorePodsThanItHas: while they terminate, the queue must not give it quota for more.
func TestAnEndedJobWantsNoMorePodsThanItHas(t *testing.T) {
	job := newJob().with("worker", 4).needs(1).is(volcano.Failed)
	pods := of(pod("job-worker-0").running().going(), pod("job-worker-1").running().going())
	progress := see(t, job.Job, admitted("worker", 2), pods).Progress
	same(t, "in use", map[string]int32{"worker": 2}, progress.Pods)
	if !progress.OutcomePending || progress.Outcome != nil {
		t.Errorf("the queue is told %+v, want the end", progress)
	}
}

// TestTasksThatCanDoWithoutPods: where minAvailable is below the sum of the tasks' minimums it alone counts, and else a
// task with a minimum of 0 can do without pods. "a 4 | 2" is a task of 4 pods without which the job starts if 2 pods of
// any tasks run.
func TestTasksThatCanDoWithoutPods(t *testing.T) {
	least := func(n int32) func(*volcano.TaskSpec) {
		return func(task *volcano.TaskSpec) { task.MinAvailable = ptr.To(n) }
	}
	forged := func(task *volcano.TaskSpec) {
		task.Template.Annotations = map[string]string{muster.MinPodsAnnotation: "1"}
	}
	for name, c := range map[string]struct {
		job  jobBuilder
		want string
	}{
		"all must run":              {newJob().with("a", 1).with("b", 2), "a 1, b 2"},
		"any one":                   {newJob().with("a", 1).with("b", 2).needs(1), "a 1 | 1, b 2 of 1 | 1"},
		"any one, in another order": {newJob().with("b", 2).with("a", 1).needs(1), "b 2 of 1 | 1, a 1 of 1 | 1"},
		"the tasks' own minimums count for nothing": {newJob().with("a", 2, least(2)).with("b", 2, least(2)).needs(3),
			"a 2 | 3, b 2 of 1 | 3"},
		"they count where the job's covers them": {newJob().with("a", 2, least(1)).with("b", 2, least(1)).needs(2),
			"a 2 of 1, b 2 of 1"},
		"a minimum of 0": {newJob().with("a", 1).with("b", 2, least(0)), "a 1, b 2 of 1 | 1"},
		"a minimum of 0, in another order": {newJob().with("b", 2, least(0)).with("a", 1).needs(1),
			"b 2 of 1 | 1, a 1"},
		"only minimums of 0": {newJob().with("a", 1, least(0)).with("b", 2, least(0)),
			"a 1 of 1 | 1, b 2 of 1 | 1"},
		"a minimum of 0, and the job needs more": {newJob().with("a", 1).with("b", 2, least(0)).needs(2),
			"a 1, b 2 of 1 | 2"},
		"one task has pods": {newJob().with("a", 2).with("b", 0).needs(1), "a 2 of 1"},
		"another task waits for it": {newJob().with("a", 1).with("b", 2,
			dependsOn(volcano.IterationAll, "a")).needs(1), "a 1, b 2 of 1 | 1"},
		"beside a task with annotations": {newJob().with("a", 1, least(0)).with("w", 3, between("2", "4")),
			"a 1 of 1 | 2, w 4 of 2"},
		"the annotation on a template has no effect": {newJob().with("a", 1, forged).with("b", 2), "a 1, b 2"},
		"nor on that of a task which can do without it": {newJob().with("a", 1, forged).with("b", 2).needs(2),
			"a 1 | 2, b 2 of 1 | 2"},
	} {
		var parts []string
		for _, set := range describe(c.job.Job, jobs.Facts{}).PodSets {
			part := fmt.Sprintf("%s %d", set.Name, set.Count)
			if set.MinCount != nil {
				part += fmt.Sprintf(" of %d", *set.MinCount)
			}
			if together := set.Template.Annotations[muster.MinPodsAnnotation]; together != "" {
				part += " | " + together
			}
			parts = append(parts, part)
		}
		if got := strings.Join(parts, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestGangsOfTasksMakeUpForThoseWithoutPods: kube-scheduler binds together as many pods of a task as the job needs
// beside those that were granted to its other tasks.
func TestGangsOfTasksMakeUpForThoseWithoutPods(t *testing.T) {
	job := newJob().with("a", 2).with("b", 8).needs(3)
	for _, c := range []struct {
		a, b int
		want map[string]int32
	}{{0, 4, map[string]int32{"a": 0, "b": 3}}, {2, 1, map[string]int32{"a": 2, "b": 1}},
		{2, 8, map[string]int32{"a": 0, "b": 1}}} {
		seen := jobs.Seen[*volcano.Job]{Job: job.Job, Admission: admitted("a", c.a, "b", c.b)}
		s := sizes{&view{seen: seen, job: job.Job, tasks: tasksOf(job.Job)}}
		if got := s.least(); !maps.Equal(got, c.want) {
			t.Errorf("with %d pods of a and %d of b granted: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// TestAJobThatQueuesAgainAsksForNoTasksThatAreOver: otherwise they could be given the quota again, in place of the task
// that waits for it.
func TestAJobThatQueuesAgainAsksForNoTasksThatAreOver(t *testing.T) {
	asks := func(job jobBuilder, queued ...string) (names []string) {
		var facts jobs.Facts
		for _, name := range queued {
			facts.Queued = append(facts.Queued, kueue.PodSet{Name: kueue.PodSetReference(name)})
		}
		for _, set := range describe(job.Job, facts).PodSets {
			names = append(names, fmt.Sprint(set.Name, " ", set.Template.Annotations[muster.MinPodsAnnotation]))
		}
		return names
	}
	job := newJob().with("a", 2).with("b", 1).with("c", 3).needs(4)
	job.Status.ControlledResources = map[string]string{succeededKey: "a:0", failedKey: "a:1"}
	same(t, "of a new Workload", []string{"b 2", "c 2"}, asks(job))
	same(t, "of one that asks for all", []string{"a 4", "b 4", "c 4"}, asks(job, "a", "b", "c"))
	same(t, "of one that was made since", []string{"b 2", "c 2"}, asks(job, "b", "c"))
	job.Status.ControlledResources = map[string]string{succeededKey: "a:0"}
	same(t, "one pod is left", []string{"a 4", "b 4", "c 4"}, asks(job))
	gang := newJob().with("a", 1).with("b", 1)
	gang.Status.ControlledResources = map[string]string{succeededKey: "a:0"}
	same(t, "all tasks must run", []string{"a ", "b "}, asks(gang))
}
