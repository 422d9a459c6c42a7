package jobset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

const (
	inProgress    = "StartupPolicyInProgress=True InOrderStartupPolicyInProgress: in order startup policy is in progress"
	noMore        = "StartupPolicyInProgress=False InOrderStartupPolicyInProgress: in order startup policy is in progress"
	allStarted    = "StartupPolicyCompleted=True InOrderStartupPolicyCompleted: in order startup policy has completed"
	notAllStarted = "StartupPolicyCompleted=False InOrderStartupPolicyCompleted: in order startup policy has completed"

	toldProgress = "Normal InOrderStartupPolicyInProgress: in order startup policy is in progress"
	toldStarted  = "Normal InOrderStartupPolicyCompleted: in order startup policy has completed"
)

func TestInOrder(t *testing.T) {
	started := func() setBuilder {
		return newSet().inOrder().is(jobset.JobSetStartupPolicyInProgress, metav1.ConditionTrue, "InOrderStartupPolicyInProgress", "in order startup policy is in progress")
	}
	done := func() setBuilder {
		return newSet().inOrder().is(jobset.JobSetStartupPolicyCompleted, metav1.ConditionTrue, "InOrderStartupPolicyCompleted", "in order startup policy has completed")
	}
	for name, tc := range map[string]struct {
		js         setBuilder
		admission  jobs.Admission
		children   []client.Object
		writes     []string
		conditions []string
		events     []string
	}{
		"the first starts alone": {
			js: newSet().inOrder(), children: of(), writes: []string{"create Job js-leader-0"}, conditions: []string{inProgress}, events: []string{toldProgress}},
		"the next waits until it is ready": {
			js: started(), children: of(job("leader", 0).active()), conditions: []string{inProgress}},
		"the next starts once it is": {
			js: started(), children: of(job("leader", 0).ready()),
			writes: []string{"create Job js-workers-0", "create Job js-workers-1"}, conditions: []string{inProgress}},
		"or once it has succeeded": {
			js: started(), children: of(job("leader", 0).succeeded()),
			writes: []string{"create Job js-workers-0", "create Job js-workers-1"}, conditions: []string{inProgress}},
		"the order has been kept once the last is ready": {
			js: started(), children: of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{noMore, allStarted}, events: []string{toldStarted}},
		"who is not ready any more begins the order again, in the conditions": {
			js: done(), children: of(job("leader", 0).active(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{notAllStarted, inProgress}, events: []string{toldProgress}},
		"suspended Jobs are all made at once": {
			js: newSet().inOrder().suspended(), children: of(),
			writes:     []string{"create Job js-leader-0, suspended", "create Job js-workers-0, suspended", "create Job js-workers-1, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"and resumed in order": {
			js:         newSet().inOrder().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"),
			children:   of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()),
			writes:     []string{"change Job js-leader-0"},
			conditions: []string{isSuspended, inProgress}, events: []string{toldProgress}},
		"the JobSet is resumed once the last is": {
			js:         started().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"),
			children:   of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{noMore, isResumed, allStarted},
			events:     []string{"Normal ResumeJobs: jobset is resumed", toldStarted}},
		"the order holds in a queue too": {
			js: newSet().inOrder(), admission: admitted, children: of(), writes: []string{"create Job js-leader-0"}, conditions: []string{inProgress}, events: []string{toldProgress}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.admission.Grant == "" {
				tc.admission = unqueued
			}
			p := look(t, tc.js.js, tc.admission, tc.children)
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
		"who waits for ready Jobs waits while one is not":   {ready(), of(leader, job("workers", 0).ready(), job("workers", 1).active()), nil},
		"and starts when all are":                           {ready(), of(leader, job("workers", 0).ready(), job("workers", 1).ready()), create},
		"one that has succeeded is as good as ready":        {ready(), of(leader, job("workers", 0).succeeded(), job("workers", 1).ready()), create},
		"who waits for complete Jobs waits while one runs":  {complete(), of(leader, job("workers", 0).succeeded(), job("workers", 1).ready()), nil},
		"and starts when all have succeeded":                {complete(), of(leader, job("workers", 0).succeeded(), job("workers", 1).succeeded()), create},
		"of several dependencies all must be met":           {both(), of(job("leader", 0).active(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), nil},
		"and then it starts":                                {both(), of(leader, job("workers", 0).succeeded(), job("workers", 1).succeeded()), create},
		"suspended, it is not even made":                    {ready().suspended(), of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()), nil},
		"a suspended one is resumed only when they are met": {ready(), of(leader, job("workers", 0).active(), job("workers", 1).active(), job("eval", 0).suspended()), nil},
		"and then it is":                                    {ready(), of(leader, job("workers", 0).ready(), job("workers", 1).ready(), job("eval", 0).suspended()), []string{"change Job js-eval-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "writes", tc.writes, writes(look(t, tc.js.js, unqueued, tc.children)))
		})
	}
}

// TestDependencyOfAnEarlierAttemptDoesNotCount: after a restart, dependents wait again.
func TestDependencyOfAnEarlierAttemptDoesNotCount(t *testing.T) {
	b := newSet().with("eval", 1, jobset.DependsOn{Name: "leader", Status: jobset.DependencyComplete}).restarted(1)
	p := look(t, b.js, unqueued, of(job("leader", 0).succeeded().deleting()))
	same(t, "writes", []string{"create Job js-workers-0", "create Job js-workers-1"}, writes(p))
}
