package jobset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// TestReplicatedJobsWithoutJobs checks that they hold up no other replicated job, and that a JobSet of nothing else
// does not succeed.
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
		"a JobSet without any gets its Service":        {empty(), nil, []string{"create Service js"}, nil},
		"and never ends":                               {empty(), of(), nil, nil},
		"nor does one whose replicated jobs have none": {empty().with("none", 0), of(), nil, nil},
		"success of all others is enough":              {empty().with("none", 0).with("leader", 1), of(job("leader", 0).succeeded()), nil, []string{isCompleted}},
		"but not where it is asked of those alone": {empty().with("none", 0).with("leader", 1).with("workers", 1).succeedsBy(jobset.OperatorAny, "none"),
			of(job("leader", 0).succeeded(), job("workers", 0).ready()), nil, nil},
		"who waits until they are ready need not wait": {empty().with("none", 0).with("leader", 1, jobset.DependsOn{Name: "none", Status: jobset.DependencyReady}),
			of(), []string{"create Job js-leader-0"}, nil},
		"nor who waits until they have ended": {empty().with("none", 0).with("leader", 1, jobset.DependsOn{Name: "none", Status: jobset.DependencyComplete}),
			of(), []string{"create Job js-leader-0"}, nil},
		"in order, who comes after them starts at once": {empty().with("none", 0).with("leader", 1).inOrder(), of(), []string{"create Job js-leader-0"}, []string{inProgress}},
	} {
		t.Run(name, func(t *testing.T) {
			p := look(t, tc.js.js, unqueued, tc.children)
			same(t, "writes", tc.writes, writes(p))
			same(t, "conditions", tc.conditions, conditions(p))
		})
	}
}

// TestUnreachableSuccessPolicyIsReported: the JobSet would run forever, and nothing would say why.
func TestUnreachableSuccessPolicyIsReported(t *testing.T) {
	const never = "Warning SuccessPolicyNeverMet: The JobSet can never succeed: successPolicy waits for a Job of none, whose replicas is 0, to succeed." +
		" Create the JobSet again with another policy"
	for name, tc := range map[string]struct {
		js   setBuilder
		want []string
	}{
		"any Job of a replicated job that has none": {newSet().with("none", 0).succeedsBy(jobset.OperatorAny, "none"), []string{never}},
		"any Job of two, of which one has some":     {newSet().with("none", 0).succeedsBy(jobset.OperatorAny, "none", "leader"), nil},
		"all Jobs of one that has none":             {newSet().with("none", 0).succeedsBy(jobset.OperatorAll, "none"), nil},
		"any Job":                                   {newSet().with("none", 0).succeedsBy(jobset.OperatorAny), nil},
	} {
		running := of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready())
		same(t, name, tc.want, events(look(t, tc.js.js, unqueued, running)))
	}
}

// TestJobsGoWithTheirPods: the name of a Job stays taken until the last of its pods is gone, so that pods of
// two attempts never run at the same time.
func TestJobsGoWithTheirPods(t *testing.T) {
	over := newSet().is(jobset.JobSetCompleted, metav1.ConditionTrue, "AllJobsCompleted", "m").js
	for what, p := range map[string]jobs.Plan{
		"at a restart": look(t, newSet().restarts(1, jobset.Recreate).js, unqueued, of(job("leader", 0).failed())),
		"at the end":   look(t, over, unqueued, of(job("leader", 0).ready())),
	} {
		want := jobs.Delete(p.Writes[0].Object(), metav1.DeletePropagationForeground)
		if len(p.Writes) != 1 || !cmp.Equal(want, p.Writes[0], cmp.AllowUnexported(jobs.Write{})) {
			t.Errorf("%s: %v", what, writes(p))
		}
	}
}
