package vcjob

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// A job runs though its priority class does not exist, as in Volcano, but it says so until it has ended.
func TestMissingPriorityClassesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		class string
		phase volcano.JobPhase
		want  []string
	}{
		"misspelled": {"hihg", volcano.Pending,
			[]string{"PriorityClassNotFound PriorityClass hihg, which spec.priorityClassName names, does not exist: it has no effect on the job's place in the queue and on its pods"}},
		"there":        {"high", volcano.Pending, nil},
		"none":         {"", volcano.Pending, nil},
		"of the ended": {"hihg", volcano.Completed, nil},
	} {
		job := newJob().with("worker", 1).is(c.phase)
		job.Spec.PriorityClassName = c.class
		got := plan(jobs.Seen[*volcano.Job]{Job: job.Job, Admission: waiting, Now: jobstest.Now, Facts: jobs.Facts{
			Priorities: jobs.PriorityFacts{Pod: map[string]*schedulingv1.PriorityClass{"high": {Value: 7}}}}})
		same(t, name, c.want, told(got))
	}
}

// A pod whose container ends again and again is in the phase Running. The status says how many of the running pods are
// ready, as `muster jobs` counts them.
func TestTheStatusSaysHowManyRunningPodsAreReady(t *testing.T) {
	unready := func(p podBuilder) podBuilder {
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		return p
	}
	crashing := unready(pod("job-worker-0").running())
	for name, c := range map[string]struct {
		pods []any
		want string
	}{
		"none runs":               {[]any{pod("job-worker-0"), pod("job-worker-1").ended(0)}, ""},
		"one of two is ready":     {[]any{crashing, pod("job-worker-1").running()}, "1"},
		"none of two is ready":    {[]any{crashing, unready(pod("job-worker-1").running())}, "0"},
		"one that is terminating": {[]any{crashing, pod("job-worker-1").running().going()}, "0"},
	} {
		job := newJob().with("worker", 2).is(volcano.Running)
		if got := then(see(t, job.Job, all, of(c.pods...)), job).Status.ControlledResources[volcano.ReadyKey]; got != c.want {
			t.Errorf("%s: ready is %q, want %q", name, got, c.want)
		}
	}
}

// TestTheStateSaysWhatIsRefused, also if enough pods run and only others are refused, and no more once nothing is.
func TestTheStateSaysWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		phase volcano.JobPhase
		why   string
		pods  []any
		want  string
	}{
		"none runs": {volcano.Pending, "exceeded quota", nil,
			"Pending ObjectsRefused: Its pods cannot be created: exceeded quota"},
		"one of two needed runs": {volcano.Pending, "exceeded quota", []any{pod("job-worker-0").running()},
			"Pending ObjectsRefused: Its pods cannot be created: exceeded quota"},
		"enough run": {volcano.Running, "exceeded quota", []any{pod("job-worker-0").running(),
			pod("job-worker-1").running()}, "Running ObjectsRefused: Its pods cannot be created: exceeded quota"},
		"enough run, nothing refused": {volcano.Running, "",
			[]any{pod("job-worker-0").running(), pod("job-worker-1").running()}, "Running Running: Enough pods run"},
		"none runs, nothing refused": {volcano.Pending, "", nil, "Pending Starting: Pods are being started"},
		"enough run for the first time": {volcano.Pending, "",
			[]any{pod("job-worker-0").running(), pod("job-worker-1").running()}, "Running Running: Enough pods run"},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob().with("worker", 3).needs(2).is(tc.phase)
			job.Status.State.Reason = "ObjectsRefused"
			seen := jobs.Seen[*volcano.Job]{Job: job.Job, Admission: admitted("worker", 3), Children: of(tc.pods...), Now: now}
			if tc.why != "" {
				seen.RefusedObjects = jobs.RefusedObjects{Objects: 1, Since: now, What: "Its pods cannot be created", Why: tc.why}
			}
			same(t, "state", tc.want, state(jobstest.CheckedPlan(t, plan, seen)))
		})
	}
}

// TestPodsOfATaskThatMustWaitAreNotMissing: a job is ready with the pods of the tasks that may start, and the stage
// that it waits for is the task that began last.
func TestPodsOfATaskThatMustWaitAreNotMissing(t *testing.T) {
	created := func(p podBuilder, ago time.Duration) podBuilder {
		p.CreationTimestamp = metav1.NewTime(now.Add(-ago))
		return p
	}
	ps := func(ready ...bool) (out []any) {
		for i, is := range ready {
			p := pod(fmt.Sprintf("job-ps-%d", i))
			if is {
				p = p.running()
			}
			out = append(out, p)
		}
		return out
	}
	chain := newJob().with("ps", 2).with("worker", 2, dependsOn("", "ps")).with("eval", 1,
		dependsOn("", "worker")).is(volcano.Running)
	either := newJob().with("ps", 2).with("seed", 1).with("worker", 1,
		dependsOn(volcano.IterationAny, "ps", "seed")).is(volcano.Running)
	worker := func(i int) podBuilder { return pod(fmt.Sprintf("job-worker-%d", i)) }
	for name, tc := range map[string]struct {
		job   jobBuilder
		pods  []any
		ready bool
		stage *jobs.Stage
	}{
		"none of the first is there":      {chain, nil, false, nil},
		"one of the first is not ready":   {chain, ps(true, false), false, nil},
		"the first has just become ready": {chain, ps(true, true), false, &jobs.Stage{Name: "worker"}},
		"the second starts": {chain, append(ps(true, true), created(worker(0), time.Second),
			created(worker(1), time.Minute)), false, &jobs.Stage{Name: "worker", Since: now.Add(-time.Minute)}},
		"the second is ready, the third starts": {chain,
			append(ps(true, true), worker(0).running(), worker(1).running()), false, &jobs.Stage{Name: "eval"}},
		"all are ready": {chain,
			append(ps(true, true), worker(0).running(), worker(1).running(), pod("job-eval-0").running()), true, nil},
		"the first has ended": {chain, []any{pod("job-ps-0").ended(0), pod("job-ps-1").ended(0),
			worker(0).running(), worker(1).running(), pod("job-eval-0").running()}, true, nil},
		"one of the first is lost, the third may start": {chain,
			append(ps(true, false), worker(0).running(), worker(1).running()), false, &jobs.Stage{Name: "eval"}},
		"any of two: one is ready": {either, append(ps(true, false), pod("job-seed-0").running()), false,
			&jobs.Stage{Name: "worker"}},
		"any of two: none is ready": {either, ps(true, false), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var granted []any
			for i := range tc.job.Spec.Tasks {
				granted = append(granted, tc.job.Spec.Tasks[i].Name, int(tc.job.Spec.Tasks[i].Replicas))
			}
			got := see(t, tc.job.Job, admitted(granted...), of(tc.pods...)).Progress
			if got.Ready != tc.ready {
				t.Errorf("ready = %v, want %v", got.Ready, tc.ready)
			}
			same(t, "stage", tc.stage, got.Stage)
		})
	}
}
