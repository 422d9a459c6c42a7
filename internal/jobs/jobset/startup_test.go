package jobset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

const (
	inProgress    = "StartupPolicyInProgress=True InOrderStartupPolicyInProgress: in order startup policy is in progress"
	notInProgress = "StartupPolicyInProgress=False InOrderStartupPolicyInProgress: in order startup policy is in progress"
	allStarted    = "StartupPolicyCompleted=True InOrderStartupPolicyCompleted: in order startup policy has completed"
	notAllStarted = "StartupPolicyCompleted=False InOrderStartupPolicyCompleted: in order startup policy has completed"

	progressEvent = "Normal InOrderStartupPolicyInProgress: in order startup policy is in progress"
	startedEvent  = "Normal InOrderStartupPolicyCompleted: in order startup policy has completed"
)

func TestInOrder(t *testing.T) {
	started := func() setBuilder {
		return newSet().inOrder().is(jobset.JobSetStartupPolicyInProgress, metav1.ConditionTrue,
			"InOrderStartupPolicyInProgress", "in order startup policy is in progress")
	}
	done := func() setBuilder {
		return newSet().inOrder().is(jobset.JobSetStartupPolicyCompleted, metav1.ConditionTrue,
			"InOrderStartupPolicyCompleted", "in order startup policy has completed")
	}
	for name, tc := range map[string]struct {
		js         setBuilder
		admission  jobs.Admission
		children   []client.Object
		writes     []string
		conditions []string
		events     []string
	}{
		"no Jobs": {
			js: newSet().inOrder(), children: of(), writes: []string{"create Job js-leader-0"}, conditions: []string{inProgress},
			events: []string{progressEvent}},
		"first not ready": {
			js: started(), children: of(job("leader", 0).active()), conditions: []string{inProgress}},
		"first ready": {
			js: started(), children: of(job("leader", 0).ready()),
			writes: []string{"create Job js-workers-0", "create Job js-workers-1"}, conditions: []string{inProgress}},
		"first succeeded": {
			js: started(), children: of(job("leader", 0).succeeded()),
			writes: []string{"create Job js-workers-0", "create Job js-workers-1"}, conditions: []string{inProgress}},
		"last ready": {
			js: started(), children: of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{notInProgress, allStarted}, events: []string{startedEvent}},
		"first not ready any more after the startup": {
			js: done(), children: of(job("leader", 0).active(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{allStarted}},
		"first is about to fail after the startup": {
			js: done(), children: of(job("leader", 0).active().failing(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{allStarted}},
		"all are started anew": {
			js: done().restarted(1), children: of(),
			writes: []string{"create Job js-leader-0"}, conditions: []string{notAllStarted, inProgress},
			events: []string{progressEvent}},
		"about to fail during the startup": {
			js: started(), children: of(job("leader", 0).failing()),
			writes: []string{"create Job js-workers-0", "create Job js-workers-1"}, conditions: []string{inProgress}},
		"created suspended": {
			js: newSet().inOrder().suspended(), children: of(),
			writes: []string{"create Job js-leader-0, suspended", "create Job js-workers-0, suspended",
				"create Job js-workers-1, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"resumed": {
			js: newSet().inOrder().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs",
				"jobset is suspended"),
			children:   of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()),
			writes:     []string{"change Job js-leader-0"},
			conditions: []string{isSuspended, inProgress}, events: []string{progressEvent}},
		"resumed, last ready": {
			js:         started().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"),
			children:   of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{notInProgress, isResumed, allStarted},
			events:     []string{"Normal ResumeJobs: jobset is resumed", startedEvent}},
		"admitted": {
			js: newSet().inOrder(), admission: admitted, children: of(), writes: []string{"create Job js-leader-0"},
			conditions: []string{inProgress}, events: []string{progressEvent}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.admission.Grant == "" {
				tc.admission = unqueued
			}
			p := checkedPlan(t, tc.js.js, tc.admission, tc.children)
			same(t, "writes", tc.writes, writes(p))
			same(t, "conditions", tc.conditions, conditions(p))
			same(t, "events", tc.events, events(p))
		})
	}
}

func TestDependsOn(t *testing.T) {
	on := func(name string, status jobset.DependsOnStatus) jobset.DependsOn {
		return jobset.DependsOn{Name: name, Status: status}
	}
	ready := func() setBuilder { return newSet().with("eval", 1, on("workers", jobset.DependencyReady)) }
	complete := func() setBuilder { return newSet().with("eval", 1, on("workers", jobset.DependencyComplete)) }
	both := func() setBuilder {
		return newSet().with("eval", 1, on("leader", jobset.DependencyReady), on("workers", jobset.DependencyComplete))
	}
	create := []string{"create Job js-eval-0"}
	leader := job("leader", 0).ready()
	for name, tc := range map[string]struct {
		js       setBuilder
		children []client.Object
		writes   []string
	}{
		"Ready, one is not": {ready(),
			of(leader, job("workers", 0).ready(), job("workers", 1).active()), nil},
		"Ready, all are": {ready(),
			of(leader, job("workers", 0).ready(), job("workers", 1).ready()), create},
		"Ready, one has succeeded": {ready(),
			of(leader, job("workers", 0).succeeded(), job("workers", 1).ready()), create},
		"Complete, one is not": {complete(),
			of(leader, job("workers", 0).succeeded(), job("workers", 1).ready()), nil},
		"Complete, all are": {complete(),
			of(leader, job("workers", 0).succeeded(), job("workers", 1).succeeded()), create},
		"two dependencies, one not met": {both(),
			of(job("leader", 0).active(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), nil},
		"two dependencies, both met": {both(),
			of(leader, job("workers", 0).succeeded(), job("workers", 1).succeeded()), create},
		"suspended": {ready().suspended(),
			of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()), nil},
		"suspended Job, dependency not met": {ready(),
			of(leader, job("workers", 0).active(), job("workers", 1).active(), job("eval", 0).suspended()), nil},
		"suspended Job, dependency met": {ready(), of(leader, job("workers", 0).ready(), job("workers", 1).ready(),
			job("eval", 0).suspended()), []string{"change Job js-eval-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "writes", tc.writes, writes(checkedPlan(t, tc.js.js, unqueued, tc.children)))
		})
	}
}

// TestDependencyOfAnEarlierAttemptDoesNotCount: after a restart, dependent replicated jobs wait again.
func TestDependencyOfAnEarlierAttemptDoesNotCount(t *testing.T) {
	b := newSet().with("eval", 1, jobset.DependsOn{Name: "leader", Status: jobset.DependencyComplete}).restarted(1)
	p := checkedPlan(t, b.js, unqueued, of(job("leader", 0).succeeded().deleting()))
	same(t, "writes", []string{"create Job js-workers-0", "create Job js-workers-1"}, writes(p))
}

// TestPodsOfAStageThatMustWaitAreNotMissing: a JobSet is ready with the pods of the replicated jobs that may start, and
// the next one has its own time.
func TestPodsOfAStageThatMustWaitAreNotMissing(t *testing.T) {
	on := func(name string, status jobset.DependsOnStatus) jobset.DependsOn {
		return jobset.DependsOn{Name: name, Status: status}
	}
	empty := func() setBuilder {
		b := newSet()
		b.js.Spec.ReplicatedJobs = nil
		return b
	}
	complete := func() setBuilder {
		return empty().with("a", 1).with("b", 1, on("a", jobset.DependencyComplete))
	}
	three := func() setBuilder { return empty().with("a", 1).with("b", 1).with("c", 1).inOrder() }
	since := func(b jobBuilder, at time.Time) jobBuilder {
		b.job.Status.StartTime = ptr.To(metav1.NewTime(at))
		return b
	}
	for name, tc := range map[string]struct {
		js       setBuilder
		children []client.Object
		ready    bool
		stage    *jobs.Stage
	}{
		"first not ready":                       {complete(), of(job("a", 0).active()), false, nil},
		"first ready, second waits for its end": {complete(), of(job("a", 0).ready()), true, nil},
		"first has ended, second is created":    {complete(), of(job("a", 0).succeeded()), false, &jobs.Stage{Name: "b"}},
		"second has started": {complete(), of(job("a", 0).succeeded(), since(job("b", 0).active(), now)),
			false, &jobs.Stage{Name: "b", Since: now}},
		"second is ready": {complete(),
			of(job("a", 0).succeeded(), since(job("b", 0).ready(), now)), true, nil},
		"in order, first not ready": {three(), of(job("a", 0).active()), false, nil},
		"in order, second not ready": {three(), of(job("a", 0).ready(), since(job("b", 0).active(), now)), false,
			&jobs.Stage{Name: "b", Since: now}},
		"in order, third is created": {three(), of(job("a", 0).ready(), job("b", 0).ready()), false,
			&jobs.Stage{Name: "c"}},
		"in order, first is lost, second starts": {three(), of(job("a", 0).active(), job("b", 0).active()), false, nil},
		"in order, all ready": {three(),
			of(job("a", 0).ready(), job("b", 0).ready(), job("c", 0).ready()), true, nil},
		"no stages": {newSet(), of(job("leader", 0).ready()), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkedPlan(t, tc.js.js, admitted, tc.children).Progress
			same(t, "ready", tc.ready, got.Ready)
			same(t, "stage", tc.stage, got.Stage)
		})
	}
}
