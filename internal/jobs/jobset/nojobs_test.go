package jobset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// TestReplicatedJobsWithoutJobs checks that replicated jobs of zero replicas delay no other one, and that a JobSet of
// nothing else does not succeed.
func TestReplicatedJobsWithoutJobs(t *testing.T) {
	empty := func() setBuilder {
		return setBuilder{&jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", UID: "js-uid"}}}
	}
	for name, tc := range map[string]struct {
		js         setBuilder
		children   []client.Object
		writes     []string
		conditions []string
	}{
		"no replicated jobs, no Service yet": {empty(), nil, []string{"create Service js"}, nil},
		"no replicated jobs":                 {empty(), of(), nil, nil},
		"no Jobs":                            {empty().with("none", 0), of(), nil, nil},
		"all others succeeded": {empty().with("none", 0).with("leader", 1), of(job("leader", 0).succeeded()),
			nil, []string{isCompleted}},
		"success policy of no Jobs": {empty().with("none", 0).with("leader", 1).with("workers",
			1).succeedsBy(jobset.OperatorAny, "none"),
			of(job("leader", 0).succeeded(), job("workers", 0).ready()), nil, nil},
		"dependency on ready Jobs": {empty().with("none", 0).with("leader", 1,
			jobset.DependsOn{Name: "none", Status: jobset.DependencyReady}),
			of(), []string{"create Job js-leader-0"}, nil},
		"dependency on complete Jobs": {empty().with("none", 0).with("leader", 1,
			jobset.DependsOn{Name: "none", Status: jobset.DependencyComplete}),
			of(), []string{"create Job js-leader-0"}, nil},
		"in order": {empty().with("none", 0).with("leader", 1).inOrder(), of(), []string{"create Job js-leader-0"},
			[]string{inProgress}},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.js.js, unqueued, tc.children)
			same(t, "writes", tc.writes, writes(p))
			same(t, "conditions", tc.conditions, conditions(p))
		})
	}
}

// TestUnreachableSuccessPolicyIsReported: the JobSet would never end, and otherwise nothing would say why.
func TestUnreachableSuccessPolicyIsReported(t *testing.T) {
	const never = "Warning SuccessPolicyNeverMet: The JobSet can never succeed: successPolicy waits for a Job of none, whose replicas is 0, to succeed." +
		" Create the JobSet again with another policy"
	for name, tc := range map[string]struct {
		js   setBuilder
		want []string
	}{
		"any Job of a replicated job without Jobs": {newSet().with("none", 0).succeedsBy(jobset.OperatorAny, "none"),
			[]string{never}},
		"any Job of two replicated jobs, one without Jobs": {newSet().with("none", 0).succeedsBy(jobset.OperatorAny,
			"none", "leader"), nil},
		"all Jobs of a replicated job without Jobs": {newSet().with("none", 0).succeedsBy(jobset.OperatorAll, "none"), nil},
		"any Job": {newSet().with("none", 0).succeedsBy(jobset.OperatorAny), nil},
	} {
		running := of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready())
		same(t, name, tc.want, events(checkedPlan(t, tc.js.js, unqueued, running)))
	}
}

// TestJobsGoWithTheirPods: a Job is deleted in the foreground, so that its name stays taken until its last pod is gone,
// and pods of two attempts never run at the same time.
func TestJobsGoWithTheirPods(t *testing.T) {
	completed := newSet().is(jobset.JobSetCompleted, metav1.ConditionTrue, "AllJobsCompleted", "m").js
	for name, p := range map[string]jobs.Plan{
		"at a restart": checkedPlan(t, newSet().restarts(1, jobset.Recreate).js, unqueued, of(job("leader", 0).failed())),
		"at the end":   checkedPlan(t, completed, unqueued, of(job("leader", 0).ready())),
	} {
		want := write.DeleteInForeground(p.Writes[0].Object())
		if len(p.Writes) != 1 || !cmp.Equal(want, p.Writes[0], cmp.AllowUnexported(write.Write{})) {
			t.Errorf("%s: writes %v, want one deletion in the foreground", name, writes(p))
		}
	}
}
