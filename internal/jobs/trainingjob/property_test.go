package trainingjob

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/replicas"
)

// cluster holds a TrainingJob and its children in memory.
type cluster struct {
	*jobstest.Cluster
	job   jobBuilder
	grant jobs.Admission
	// ended is the job's outcome; nil before its end.
	ended *jobs.Outcome
}

// newCluster returns a cluster that fails the test if objects are created after the end, or pods without quota.
func newCluster(t *rapid.T, job jobBuilder, grant jobs.Admission) *cluster {
	c := &cluster{Cluster: jobstest.NewCluster(t), job: job, grant: grant}
	c.Signalled = 143
	c.MayMake = func(o client.Object) string {
		_, isPod := o.(*corev1.Pod)
		switch {
		case c.ended != nil:
			return "after the end"
		case isPod && (!c.grant.MayStart() || suspended(c.job.TrainingJob)):
			return "without quota or while suspended"
		}
		return ""
	}
	return c
}

// randomJob returns a job of random sizes and policies.
func randomJob(t *rapid.T) jobBuilder {
	least := rapid.Int32Range(1, 3).Draw(t, "least")
	b := newJob(least, least+rapid.Int32Range(0, 3).Draw(t, "more")).
		restarts(rapid.SampledFrom([]breezeml.RestartPolicy{"", breezeml.RestartNever, breezeml.RestartOnFailure,
			breezeml.RestartExitCode}).Draw(t, "policy")).
		cleans(rapid.SampledFrom([]breezeml.CleanPodPolicy{"", breezeml.CleanPodNone, breezeml.CleanPodRunning,
			breezeml.CleanPodAll}).Draw(t, "clean-up"))
	b.Spec.RunPolicy.BackoffLimit = ptr.To(rapid.Int32Range(0, 4).Draw(t, "limit"))
	return b
}

// reconcile makes a plan, does up to this many of its writes, as if it was killed then, and checks invariants. It
// reports whether anything changed.
func (c *cluster) reconcile(writes int) bool {
	p := plan(settings, jobs.Seen[*breezeml.TrainingJob]{Job: c.job.TrainingJob, Admission: c.grant,
		Children: c.Children(), Now: c.Now})
	c.checkProgress(p)
	return c.Do(p, writes, func() bool {
		after := withStatus(p, c.job)
		if cmp.Equal(c.job.Status, after.Status, cmpopts.EquateEmpty()) {
			return false
		}
		c.checkStatus(after)
		c.job = after
		return true
	})
}

// checkProgress compares the progress with the pods that exist.
func (c *cluster) checkProgress(p jobs.Plan) {
	live := int32(0)
	for _, pod := range c.Pods() {
		if !replicas.IsFinished(pod) {
			live++
		}
	}
	if p.Progress.Active != (live > 0) || p.Progress.Pods[worker] != live {
		c.T.Fatalf("with %d live pods the progress is %+v", live, p.Progress)
	}
}

// checkStatus checks the transition from the job's status to that after a plan.
func (c *cluster) checkStatus(after jobBuilder) {
	if now := outcomeOf(after.TrainingJob); c.ended != nil && (now == nil || *now != *c.ended) {
		c.T.Fatalf("the outcome changes from %+v to %+v", c.ended, now)
	} else {
		c.ended = now
	}
	s, size := &after.Status, sizesOf(after.TrainingJob)
	if s.CurrentSize != 0 && (s.CurrentSize < size.least || s.CurrentSize > size.most) ||
		(s.CurrentSize > 0) != (s.Stage == breezeml.StageRunning) {
		c.T.Fatalf("the stage is %s with the size %d, allowed are %+v", s.Stage, s.CurrentSize, size)
	}
	var sum int32
	for index, n := range s.Restarts {
		if n < c.job.Status.Restarts[index] {
			c.T.Fatalf("worker %s has %d restarts after %d", index, n, c.job.Status.Restarts[index])
		}
		sum += n
	}
	if sum > *after.Spec.RunPolicy.BackoffLimit {
		c.T.Fatalf("%d restarts of workers, the backoffLimit is %d", sum, *after.Spec.RunPolicy.BackoffLimit)
	}
	if isTrue(after.TrainingJob, breezeml.JobRunning) && isTrue(after.TrainingJob, breezeml.JobRestarting) {
		c.T.Fatalf("the job is both Running and Restarting: %v", conditions(after))
	}
	if !s.QueuedTime.Equal(c.job.Status.QueuedTime) && c.job.Status.Stage != "" &&
		c.job.Status.Stage != breezeml.StageRequeueCooldown && !isTrue(c.job.TrainingJob, breezeml.JobSuspended) {
		c.T.Fatalf("queuedTime changes though the job was %s", c.job.Status.Stage)
	}
}

// pods returns the pods in the order of their names.
func (c *cluster) pods() []*corev1.Pod { return jobs.ChildrenOf[*corev1.Pod](c.Children()) }

// TestEveryJobEndsOnce, whatever its sizes and policies, however its pods end, whatever is resized, suspended, evicted
// or deleted, and between whichever writes the operator is killed.
func TestEveryJobEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, randomJob(t), waiting)
		size := sizesOf(c.job.TrainingJob)
		someSize := rapid.Int32Range(size.least, size.most)
		code := func(name string) int32 {
			return rapid.SampledFrom([]int32{0, 0, 0, 1, 137}).Draw(t, "exit code of "+name)
		}
		some := func(pod *corev1.Pod) bool { return rapid.Bool().Draw(t, pod.Name+" makes progress") }
		for range rapid.IntRange(0, 40).Draw(t, "turbulent steps") {
			switch rapid.IntRange(0, 10).Draw(t, "step") {
			case 0:
				c.job = c.job.suspended(!suspended(c.job.TrainingJob))
			case 1:
				c.grant = rapid.SampledFrom([]jobs.Admission{waiting, stopping}).Draw(t, "grant")
			case 2, 3:
				c.grant = admitted(someSize.Draw(t, "size"))
			case 4:
				for _, pod := range c.pods() {
					if pod.DeletionTimestamp == nil && !replicas.IsFinished(pod) {
						c.Delete(pod) // as a user would
						break
					}
				}
			case 5:
				c.Now = c.Now.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "time passes"))
			case 6, 7:
				c.RunPods(some, code)
			case 8:
				c.reconcile(rapid.IntRange(0, 4).Draw(t, "writes before it is killed"))
			default:
				c.reconcile(1000)
			}
		}
		c.job = c.job.suspended(false)
		c.grant = admitted(someSize.Draw(t, "size at last"))
		all := func(*corev1.Pod) bool { return true }
		for turns := 0; c.ended == nil; turns++ {
			c.reconcile(1000)
			c.RunPods(all, code)
			if c.job.Status.Stage == breezeml.StageRequeueCooldown {
				c.Now = c.Now.Add(4 * time.Hour)
			}
			if turns > 300 {
				t.Fatalf("the job has not ended after %d turns; status %+v", turns, c.job.Status)
			}
		}
		for turns := 0; c.reconcile(1000) || c.RunPods(all, code); turns++ {
			if turns > 50 {
				t.Fatal("the job still changes 50 turns after its end")
			}
		}
		if p := checkedPlan(t, c.Now, c.job.TrainingJob, c.grant, c.Children()); p.Progress.Active ||
			p.Progress.Outcome == nil {
			t.Fatalf("the progress after the end is %+v, want an outcome and no pods", p.Progress)
		}
	})
}

// TestJobReachesItsSize from any state, without deleting more pods than necessary, or a running one where another could
// be deleted.
func TestJobReachesItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, randomJob(t), jobs.Admission{})
		size := sizesOf(c.job.TrainingJob)
		starts := func(b *corev1.Pod) bool { return rapid.Bool().Draw(t, b.Name+" starts") }
		for range rapid.IntRange(1, 5).Draw(t, "resizes") {
			running := map[types.UID]bool{}
			for _, pod := range c.pods() {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					running[pod.UID] = true
				}
			}
			next := rapid.Int32Range(size.least, size.most).Draw(t, "size")
			c.grant = admitted(next)
			for turns := 0; c.reconcile(1000) || c.removeTerminating(); turns++ {
				if turns > 50 {
					t.Fatal("the job still changes after 50 turns")
				}
			}
			kept := 0
			for _, pod := range c.pods() {
				if running[pod.UID] {
					kept++
				}
			}
			if got := int32(len(c.pods())); got != next {
				t.Fatalf("there are %d pods, want %d", got, next)
			}
			if kept < min(len(running), int(next)) {
				t.Fatalf("%d of %d running pods were kept, at size %d", kept, len(running), next)
			}
			if got := int32(len(jobs.ChildrenOf[*corev1.Service](c.Children()))); got != next {
				t.Fatalf("there are %d Services, want %d", got, next)
			}
			for _, pod := range c.pods() {
				if pod.Status.Phase == corev1.PodPending && starts(pod) {
					c.Put(jobstest.Pod{Pod: pod.DeepCopy()}.Running().Pod)
				}
			}
		}
	})
}

// removeTerminating removes pods that are terminating, and reports whether there were any.
func (c *cluster) removeTerminating() bool {
	return c.RunPods(replicas.IsTerminating, func(string) int32 { return 0 })
}
