package jobset

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// cluster holds a JobSet and its children in memory, with a small model of the Job controller and the garbage
// collector.
type cluster struct {
	t        *rapid.T
	js       *jobset.JobSet
	grant    jobs.Admission
	children map[string]client.Object
	// ended is the terminal state; "" before the end.
	ended string
	// turbulent is whether suspensions, evictions and deletions happen.
	turbulent bool
}

// randomSet returns a JobSet that can end, with policies of all kinds.
func randomSet(t *rapid.T) *jobset.JobSet {
	b := setBuilder{&jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", UID: "js-uid"}}}
	names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "replicated jobs")]
	ordered := rapid.Bool().Draw(t, "in order")
	for i, name := range names {
		var on []jobset.DependsOn
		if i > 0 && !ordered && rapid.Bool().Draw(t, name+" depends on another") {
			on = append(on, jobset.DependsOn{
				Name: rapid.SampledFrom(names[:i]).Draw(t, "dependency of "+name),
				Status: rapid.SampledFrom([]jobset.DependsOnStatus{jobset.DependencyReady, jobset.DependencyComplete}).Draw(t,
					"awaited by "+name),
			})
		}
		b = b.with(name, rapid.Int32Range(1, 3).Draw(t, "replicas of "+name), on...)
	}
	if ordered {
		b = b.inOrder()
	}
	if rapid.Bool().Draw(t, "success policy") {
		b = b.succeedsBy(rapid.SampledFrom([]jobset.Operator{jobset.OperatorAll, jobset.OperatorAny}).Draw(t, "operator"),
			rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "targets")...)
	}
	if rapid.Bool().Draw(t, "failure policy") {
		b = b.restarts(rapid.Int32Range(-1, 3).Draw(t, "max restarts"),
			rapid.SampledFrom([]jobset.JobSetRestartStrategy{jobset.Recreate, jobset.BlockingRecreate}).Draw(t, "strategy"))
		for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
			b.js.Spec.FailurePolicy.Rules = append(b.js.Spec.FailurePolicy.Rules, jobset.FailurePolicyRule{
				Action: rapid.SampledFrom([]jobset.FailurePolicyAction{jobset.FailJobSet, jobset.RestartJobSet,
					jobset.RestartJobSetAndIgnoreMaxRestarts, jobset.RestartJob, jobset.RestartJobAndIgnoreMaxRestarts}).Draw(t,
					fmt.Sprintf("action of rule %d", i)),
				TargetReplicatedJobs: rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t,
					fmt.Sprintf("targets of rule %d", i)),
			})
		}
	}
	b.js.Spec.Suspend = ptr.To(rapid.Bool().Draw(t, "suspended"))
	if rapid.Bool().Draw(t, "restarts as a whole") {
		b = b.whole()
	}
	return b.js
}

// reconcile makes a plan, applies it and checks invariants. It reports whether anything changed.
func (c *cluster) reconcile() bool {
	p := c.plan()
	before := c.js.Status.Restarts
	changed := len(p.Writes) > 0
	if p.Status != nil {
		status := statusOf(p)
		changed = changed || !cmp.Equal(c.js.Status, status, cmpopts.EquateEmpty())
		c.js.Status = *status.DeepCopy()
	}
	for _, w := range p.Writes {
		c.apply(w)
	}
	restarts := c.js.Status.Restarts
	if used := restartsSpent(&c.js.Status); restarts < before || restarts > before+1 || used > max(0, c.maxRestarts()) {
		c.t.Fatalf("%d restarts after %d, %d of %d used", restarts, before, used, c.maxRestarts())
	}
	switch state := c.js.Status.TerminalState; {
	case c.ended != "" && state != c.ended:
		c.t.Fatalf("the JobSet ended %s and is %q now", c.ended, state)
	case state != "" && (p.Progress.Outcome == nil || p.Progress.Outcome.Succeeded != (state == "Completed")):
		c.t.Fatalf("the JobSet ended %s, and its Progress.Outcome is %+v", state, p.Progress.Outcome)
	default:
		c.ended = state
	}
	return changed
}

// plan returns the plan, in turbulent steps by checkedPlan, which is slower.
func (c *cluster) plan() jobs.Plan {
	if c.turbulent {
		return checkedPlan(c.t, c.js, c.grant, c.list())
	}
	return plan(seenOf(c.js, c.grant, c.list()))
}

func (c *cluster) maxRestarts() int32 {
	if c.js.Spec.FailurePolicy == nil {
		return 0
	}
	return c.js.Spec.FailurePolicy.MaxRestarts
}

// apply does a write, and checks that it is allowed.
func (c *cluster) apply(w write.Write) {
	o := w.Object().DeepCopyObject().(client.Object)
	key := fmt.Sprintf("%T %s", o, o.GetName())
	existing := c.children[key]
	switch w.Verb() {
	case "create":
		if existing != nil {
			c.t.Fatalf("%s is created though it exists", key)
		}
		if c.ended != "" {
			c.t.Fatalf("%s is created after the end", key)
		}
		if job, ok := o.(*batchv1.Job); ok && !*job.Spec.Suspend && !c.mayRun() {
			c.t.Fatalf("%s starts without quota or while suspended", key)
		}
		c.children[key] = o
	case "delete":
		if existing.GetDeletionTimestamp() != nil {
			c.t.Fatalf("%s is deleted twice", key)
		}
		existing.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
	case "change":
		if js, ok := o.(*jobset.JobSet); ok {
			c.js.Spec = js.Spec
			return
		}
		c.children[key] = o
	default:
		c.t.Fatalf("unexpected write: %s %s", w.Verb(), key)
	}
}

// mayRun reports whether Jobs may be started.
func (c *cluster) mayRun() bool {
	return c.grant.Grant == jobs.Admitted || c.grant.Grant == jobs.Unqueued && !*c.js.Spec.Suspend
}

// list returns the children in the order of their names.
func (c *cluster) list() []client.Object {
	var out []client.Object
	for _, key := range slices.Sorted(maps.Keys(c.children)) {
		out = append(out, c.children[key])
	}
	return out
}

// runJobs acts as the Job controller and the garbage collector: it moves the Jobs that some reports one step on. A Job
// that fails reports ends as failed. It reports whether anything changed.
func (c *cluster) runJobs(some, fails func(name string) bool) bool {
	changed := false
	for _, key := range slices.Sorted(maps.Keys(c.children)) {
		job, ok := c.children[key].(*batchv1.Job)
		if !ok || !some(job.Name) {
			continue
		}
		before := job.DeepCopy()
		s := &job.Status
		switch {
		case job.DeletionTimestamp != nil:
			delete(c.children, key)
			changed = true
		case jobs.HasEnded(job):
		case *job.Spec.Suspend:
			s.Active, s.Ready = 0, nil
		case s.Active == 0:
			s.Active = 1
		case s.Ready == nil:
			s.Ready = ptr.To[int32](1)
		case fails(job.Name):
			job.Status = batchv1.JobStatus{Failed: 1,
				Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(now)}}}
		default:
			job.Status = batchv1.JobStatus{Succeeded: 1,
				Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
		}
		changed = changed || !cmp.Equal(before, job)
	}
	return changed
}

// TestEveryJobSetEndsOnce, whatever its policies, however its Jobs end, and whatever is suspended, evicted or deleted
// meanwhile.
func TestEveryJobSetEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queued := rapid.Bool().Draw(t, "queued")
		c := &cluster{t: t, js: randomSet(t), grant: unqueued, children: map[string]client.Object{}}
		if queued {
			c.grant = waiting
		}
		failures := 0
		fails := func(name string) bool {
			// Some restarts are not limited, so the JobSet ends only if failures do.
			if failures < 12 && rapid.IntRange(0, 3).Draw(t, name+" fails if 0") == 0 {
				failures++
				return true
			}
			return false
		}
		some := func(name string) bool { return rapid.Bool().Draw(t, name+" makes progress") }
		c.turbulent = true
		for range rapid.IntRange(0, 30).Draw(t, "turbulent steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				c.js.Spec.Suspend = ptr.To(!*c.js.Spec.Suspend)
			case 1:
				if queued {
					c.grant = rapid.SampledFrom([]jobs.Admission{waiting, admitted, stopping}).Draw(t, "grant")
				}
			case 2:
				if jobs := c.list(); len(jobs) > 0 && jobs[0].GetDeletionTimestamp() == nil {
					jobs[0].SetDeletionTimestamp(ptr.To(metav1.NewTime(now))) // as a user would
				}
			case 3, 4, 5:
				c.runJobs(some, fails)
			default:
				c.reconcile()
			}
		}
		c.turbulent = false
		c.js.Spec.Suspend = ptr.To(false)
		if queued {
			c.grant = admitted
		}
		all := func(string) bool { return true }
		for turns := 0; ; turns++ {
			planned := c.reconcile()
			if ran := c.runJobs(all, fails); !planned && !ran {
				break
			}
			if turns > 200 {
				t.Fatalf("the JobSet has not ended after %d turns; status %+v", turns, c.js.Status)
			}
		}
		if c.ended == "" {
			t.Fatalf("no controller changes anything, and the JobSet has not ended: %+v", c.js.Status)
		}
		if c.reconcile() {
			t.Fatal("a reconcile after the end changed something")
		}
		for _, child := range c.list() {
			if job, ok := child.(*batchv1.Job); ok && !jobs.HasEnded(job) {
				t.Fatalf("%s runs after the end", job.Name)
			}
		}
	})
}

// TestHeldJobSetLosesItsPods: a JobSet that loses its quota stops, whatever its state, and then stays unchanged. One
// that restarts as a whole and has not ended has no Job left of which pods have succeeded, and asks for all of its
// pods.
func TestHeldJobSetLosesItsPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{t: t, js: randomSet(t), grant: admitted, children: map[string]client.Object{}}
		never := func(string) bool { return false }
		some := func(name string) bool { return rapid.Bool().Draw(t, name+" makes progress") }
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			c.reconcile()
			c.runJobs(some, never)
		}
		c.grant = rapid.SampledFrom([]jobs.Admission{waiting, stopping}).Draw(t, "grant")
		all := func(string) bool { return true }
		for turns := 0; ; turns++ {
			planned := c.reconcile()
			if ran := c.runJobs(all, never); !planned && !ran {
				break
			}
			if turns > 50 {
				t.Fatal("the JobSet still changes after 50 turns")
			}
		}
		p := checkedPlan(t, c.js, c.grant, c.list())
		if p.Progress.Active {
			t.Fatalf("Progress.Active is true though all Jobs have stopped: %+v", c.list())
		}
		again := jobs.RestartsWhole(c.js) && c.ended == ""
		for _, child := range c.list() {
			job, ok := child.(*batchv1.Job)
			if ok && job.Status.Active > 0 {
				t.Fatalf("%s still has pods", job.Name)
			}
			if ok && again && job.Status.Succeeded > 0 {
				t.Fatalf("%s is done, and is not run again", job.Name)
			}
		}
		if again && len(p.Progress.Reclaimable) > 0 {
			t.Fatalf("pods that are run again are not asked for: %v", p.Progress.Reclaimable)
		}
	})
}
