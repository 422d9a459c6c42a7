package genericjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/replicas"
)

// cluster is a GenericJob and its children in memory.
type cluster struct {
	*jobstest.Cluster
	job   *tensorstack.GenericJob
	grant jobs.Admission
	// ended is the phase at the end, once there is one.
	ended tensorstack.JobPhase
	// elastic jobs list as many replicas as they are granted.
	elastic bool
}

func newCluster(t *rapid.T, job *tensorstack.GenericJob, grant jobs.Admission) *cluster {
	c := &cluster{Cluster: jobstest.NewCluster(t), job: job, grant: grant}
	c.MayMake = func(o client.Object) string {
		_, isPod := o.(*corev1.Pod)
		switch {
		case c.ended != "":
			return "after the end"
		case isPod && (!c.grant.MayStart() || paused(c.job)):
			return "while it must not run"
		}
		return ""
	}
	return c
}

func randomJob(t *rapid.T) *tensorstack.GenericJob {
	b := newJob()
	types := []string{"master", "worker"}[:rapid.IntRange(1, 2).Draw(t, "types")]
	for _, of := range types {
		b = b.with(of, rapid.Int32Range(1, 3).Draw(t, "replicas of "+of), tensorstack.RestartPolicy{
			Policy: rapid.SampledFrom([]tensorstack.RestartPolicyType{"", tensorstack.RestartNever, tensorstack.RestartOnFailure,
				tensorstack.RestartAlways}).Draw(t, "policy of "+of),
			Limit: rapid.Int32Range(0, 2).Draw(t, "limit of "+of),
		})
	}
	randomRule := rapid.Custom(func(t *rapid.T) tensorstack.FinishRule {
		out := tensorstack.FinishRule{}
		for _, spec := range b.Spec.ReplicaSpecs {
			for index := range *spec.Replicas {
				if rapid.Bool().Draw(t, "names it") {
					out[spec.Type] = append(out[spec.Type], rule("x", int(index))["x"]...)
				}
			}
		}
		if len(out) == 0 {
			out = rule(types[0], "0")
		}
		return out
	})
	b = b.succeedsBy(rapid.SliceOfN(randomRule, 0, 2).Draw(t, "success")...).
		failsBy(rapid.SliceOfN(randomRule, 0, 2).Draw(t, "failure")...)
	b = b.cleans(rapid.SampledFrom([]tensorstack.CleanUpPolicy{tensorstack.CleanUpNone, tensorstack.CleanUpUnfinished,
		tensorstack.CleanUpAll}).Draw(t, "clean-up"))
	if rapid.Bool().Draw(t, "service") {
		b = b.port("http", 80)
	}
	return b.GenericJob
}

// seen is what a look at the job sees.
func (c *cluster) seen() jobs.Seen[*tensorstack.GenericJob] {
	return jobs.Seen[*tensorstack.GenericJob]{Job: c.job, Admission: c.grant, Children: c.Children(), Now: c.Now}
}

// reconcile plans, carries out as many writes as it may before it is killed, and holds
// them against what must never happen. It reports whether anything changed.
func (c *cluster) reconcile(writes int) bool {
	p := plan(c.seen())
	return c.Do(p, writes, func() bool {
		after := p.Status.(*tensorstack.GenericJob).Status
		if cmp.Equal(c.job.Status, after, cmpopts.EquateEmpty()) {
			return false
		}
		c.checkStatus(&after)
		c.job = c.job.DeepCopy()
		c.job.Status = *after.DeepCopy()
		return true
	})
}

func (c *cluster) checkStatus(after *tensorstack.GenericJobStatus) {
	if c.elastic {
		return
	}
	if c.ended != "" && after.Phase != c.ended {
		c.T.Fatalf("it ended %s and is %s now", c.ended, after.Phase)
	}
	if after.Phase == tensorstack.JobPhaseSucceeded || after.Phase == tensorstack.JobPhaseFailed {
		c.ended = after.Phase
	}
	var all int32
	for i, spec := range c.job.Spec.ReplicaSpecs {
		all += count(&spec)
		task := after.Tasks[i]
		var sum int32
		for j, r := range task.Replicas {
			if i < len(c.job.Status.Tasks) && r.RestartCount < c.job.Status.Tasks[i].Replicas[j].RestartCount {
				c.T.Fatalf("%s has %d restarts after %d", r.Name, r.RestartCount, c.job.Status.Tasks[i].Replicas[j].RestartCount)
			}
			if r.RestartCount > spec.RestartPolicy.Limit {
				c.T.Fatalf("%s was restarted %d times, of %d", r.Name, r.RestartCount, spec.RestartPolicy.Limit)
			}
			sum += r.RestartCount
		}
		if sum != task.RestartCount {
			c.T.Fatalf("%d restarts of %s are told, and there were %d", task.RestartCount, task.Type, sum)
		}
	}
	a := after.Aggregate
	if sum := a.Creating + a.Pending + a.Running + a.Succeeded + a.Failed + a.Unknown + a.Deleted; sum != all {
		c.T.Fatalf("%d of %d replicas are counted: %+v", sum, all, a)
	}
	for i, kind := range conditionOrder {
		if after.Conditions[i].Type != kind {
			c.T.Fatalf("conditions are in the order %+v", after.Conditions)
		}
	}
}

// runs moves pods one step on that go on. fails says who fails in the end.
func (c *cluster) runs(goesOn func(*corev1.Pod) bool, fails func(name string) bool) bool {
	return c.RunPods(goesOn, func(name string) int32 {
		if fails(name) {
			return 1
		}
		return 0
	})
}

func never(string) bool { return false }

func (c *cluster) setPaused(is bool) {
	c.job = c.job.DeepCopy()
	c.job.Spec.RunMode = &tensorstack.RunMode{Pause: &tensorstack.PauseMode{Enabled: is}}
}

// TestEveryJobEndsOnce: whatever its rules and policies, however its pods end, and
// whoever pauses, evicts, deletes or is killed after whichever write in between.
func TestEveryJobEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queued := rapid.Bool().Draw(t, "queued")
		c := newCluster(t, randomJob(t), unqueued)
		if queued {
			c.grant = waiting
		}
		fails := func(name string) bool { return rapid.IntRange(0, 2).Draw(t, name+" fails if 0") == 0 }
		some := func(pod *corev1.Pod) bool { return rapid.Bool().Draw(t, pod.Name+" goes on") }
		for range rapid.IntRange(0, 40).Draw(t, "turbulent steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				c.setPaused(!paused(c.job))
			case 1:
				if queued {
					c.grant = rapid.SampledFrom([]jobs.Admission{waiting, admitted, stopping}).Draw(t, "grant")
				}
			case 2:
				for _, pod := range jobs.ChildrenOf[*corev1.Pod](c.Children()) {
					if pod.DeletionTimestamp == nil && !replicas.IsFinished(pod) {
						c.Delete(pod) // by hand
						break
					}
				}
			case 3, 4, 5:
				c.runs(some, fails)
			case 6:
				c.reconcile(rapid.IntRange(0, 4).Draw(t, "writes before it is killed"))
			default:
				c.reconcile(1000)
			}
		}
		c.setPaused(false)
		if queued {
			c.grant = admitted
		}
		all := func(*corev1.Pod) bool { return true }
		for turns := 0; ; turns++ {
			planned := c.reconcile(1000)
			if ran := c.runs(all, fails); !planned && !ran {
				break
			}
			if turns > 300 {
				t.Fatalf("no end after %d turns; status %+v", turns, c.job.Status)
			}
		}
		if c.ended == "" {
			t.Fatalf("nobody has anything left to do, and it has not ended: %+v", c.job.Status)
		}
		if c.reconcile(1000) {
			t.Fatal("it is at rest, and yet something is written")
		}
		if p := plan(c.seen()); p.Progress.Active || p.Progress.Outcome == nil {
			t.Fatalf("at rest its queue is told %+v", p.Progress)
		}
	})
}

// TestAJobThatMayNotRunEndsUpWithoutPods: paused, or without quota, however it got there.
func TestAJobThatMayNotRunEndsUpWithoutPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, randomJob(t), admitted)
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			c.reconcile(rapid.IntRange(0, 6).Draw(t, "writes before it is killed"))
			for _, pod := range jobs.ChildrenOf[*corev1.Pod](c.Children()) {
				if rapid.Bool().Draw(t, pod.Name+" goes on") && pod.DeletionTimestamp == nil {
					c.Put(jobstest.Pod{Pod: pod.DeepCopy()}.Running().Pod)
				}
			}
		}
		if rapid.Bool().Draw(t, "paused") {
			c.setPaused(true)
		} else {
			c.grant = rapid.SampledFrom([]jobs.Admission{waiting, stopping}).Draw(t, "grant")
		}
		for turns := 0; c.reconcile(1000) || c.runs(replicas.IsTerminating, never); turns++ {
			if turns > 50 {
				t.Fatal("it does not come to rest")
			}
		}
		if p := see(t, c.job, c.grant, c.Children()); p.Progress.Active || len(p.Writes) > 0 {
			t.Fatalf("at rest its queue is told %+v, and it would %v", p.Progress, writes(p))
		}
		for name, pod := range c.Pods() {
			t.Fatalf("%s is there, %s", name, pod.Status.Phase)
		}
	})
}
