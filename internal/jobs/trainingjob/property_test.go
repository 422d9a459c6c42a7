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

// cluster is a TrainingJob and its children in memory.
type cluster struct {
	*jobstest.Cluster
	job   jobBuilder
	grant jobs.Admission
	// ended says how it ended, once it has.
	ended *jobs.Outcome
}

func newCluster(t *rapid.T, job jobBuilder, grant jobs.Admission) *cluster {
	c := &cluster{Cluster: jobstest.NewCluster(t), job: job, grant: grant}
	c.Signalled = 143
	c.MayMake = func(o client.Object) string {
		_, isPod := o.(*corev1.Pod)
		switch {
		case c.ended != nil:
			return "after the end"
		case isPod && (!c.grant.MayStart() || suspended(c.job.TrainingJob)):
			return "while it must not run"
		}
		return ""
	}
	return c
}

func randomJob(t *rapid.T) jobBuilder {
	least := rapid.Int32Range(1, 3).Draw(t, "least")
	b := newJob(least, least+rapid.Int32Range(0, 3).Draw(t, "more")).
		restarts(rapid.SampledFrom([]breezeml.RestartPolicy{"", breezeml.RestartNever, breezeml.RestartOnFailure, breezeml.RestartExitCode}).Draw(t, "policy")).
		cleans(rapid.SampledFrom([]breezeml.CleanPodPolicy{"", breezeml.CleanPodNone, breezeml.CleanPodRunning, breezeml.CleanPodAll}).Draw(t, "clean-up"))
	b.Spec.RunPolicy.BackoffLimit = ptr.To(rapid.Int32Range(0, 4).Draw(t, "limit"))
	return b
}

// reconcile plans, carries out as many writes as it may before it is killed, and holds
// them against what must never happen. It reports whether anything changed.
func (c *cluster) reconcile(writes int) bool {
	p := plan(settings, jobs.Seen[*breezeml.TrainingJob]{Job: c.job.TrainingJob, Admission: c.grant, Children: c.Children(), Now: c.Now})
	c.checkProgress(p)
	return c.Do(p, writes, func() bool {
		after := then(p, c.job)
		if cmp.Equal(c.job.Status, after.Status, cmpopts.EquateEmpty()) {
			return false
		}
		c.checkStatus(after)
		c.job = after
		return true
	})
}

// checkProgress holds what the queue is told against what there is.
func (c *cluster) checkProgress(p jobs.Plan) {
	live := int32(0)
	for _, pod := range c.Pods() {
		if !replicas.IsFinished(pod) {
			live++
		}
	}
	if p.Progress.Active != (live > 0) || p.Progress.Pods[worker] != live {
		c.T.Fatalf("with %d pods its queue is told %+v", live, p.Progress)
	}
}

func (c *cluster) checkStatus(after jobBuilder) {
	if over := outcome(after.TrainingJob); c.ended != nil && (over == nil || *over != *c.ended) {
		c.T.Fatalf("it ended %+v and now %+v", c.ended, over)
	} else {
		c.ended = over
	}
	s, size := &after.Status, sizesOf(after.TrainingJob)
	if s.CurrentSize != 0 && (s.CurrentSize < size.least || s.CurrentSize > size.most) || (s.CurrentSize > 0) != (s.Stage == breezeml.StageRunning) {
		c.T.Fatalf("it is %s with %d of %+v", s.Stage, s.CurrentSize, size)
	}
	var sum int32
	for index, n := range s.Restarts {
		if n < c.job.Status.Restarts[index] {
			c.T.Fatalf("worker %s has %d restarts after %d", index, n, c.job.Status.Restarts[index])
		}
		sum += n
	}
	if sum > *after.Spec.RunPolicy.BackoffLimit {
		c.T.Fatalf("workers were restarted %d times, of %d", sum, *after.Spec.RunPolicy.BackoffLimit)
	}
	if isTrue(after.TrainingJob, breezeml.JobRunning) && isTrue(after.TrainingJob, breezeml.JobRestarting) {
		c.T.Fatalf("conditions are %v", conditions(after))
	}
	if !s.QueuedTime.Equal(c.job.Status.QueuedTime) && c.job.Status.Stage != "" && c.job.Status.Stage != breezeml.StageRequeueCooldown && !isTrue(c.job.TrainingJob, breezeml.JobSuspended) {
		c.T.Fatalf("from %s its turn changes", c.job.Status.Stage)
	}
}

// pods are the children that are pods, in the order of their names.
func (c *cluster) pods() []*corev1.Pod { return jobs.ChildrenOf[*corev1.Pod](c.Children()) }

// TestEveryJobEndsOnce, whatever its sizes and policies, however its pods end, and whatever is resized, suspended,
// evicted, deleted or killed between any two writes.
func TestEveryJobEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, randomJob(t), waiting)
		size := sizesOf(c.job.TrainingJob)
		someSize := rapid.Int32Range(size.least, size.most)
		code := func(name string) int32 {
			return rapid.SampledFrom([]int32{0, 0, 0, 1, 137}).Draw(t, "exit code of "+name)
		}
		some := func(pod *corev1.Pod) bool { return rapid.Bool().Draw(t, pod.Name+" goes on") }
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
						c.Delete(pod) // by hand
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
				t.Fatalf("no end after %d turns; status %+v", turns, c.job.Status)
			}
		}
		for turns := 0; c.reconcile(1000) || c.RunPods(all, code); turns++ {
			if turns > 50 {
				t.Fatal("it does not come to rest")
			}
		}
		if p := see(t, c.Now, c.job.TrainingJob, c.grant, c.Children()); p.Progress.Active || p.Progress.Outcome == nil {
			t.Fatalf("at rest its queue is told %+v", p.Progress)
		}
	})
}

// TestJobReachesItsSize from every state, without giving up a running pod for one that does not run, or more pods than
// necessary.
func TestJobReachesItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, randomJob(t), jobs.Admission{})
		size := sizesOf(c.job.TrainingJob)
		begin := func(b *corev1.Pod) bool { return rapid.Bool().Draw(t, b.Name+" begins") }
		for range rapid.IntRange(1, 5).Draw(t, "resizes") {
			ran := map[types.UID]bool{}
			for _, pod := range c.pods() {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					ran[pod.UID] = true
				}
			}
			next := rapid.Int32Range(size.least, size.most).Draw(t, "size")
			c.grant = admitted(next)
			for turns := 0; c.reconcile(1000) || c.goOn(); turns++ {
				if turns > 50 {
					t.Fatal("it does not come to rest")
				}
			}
			stayed := 0
			for _, pod := range c.pods() {
				if ran[pod.UID] {
					stayed++
				}
			}
			if got := int32(len(c.pods())); got != next {
				t.Fatalf("there are %d pods, of %d", got, next)
			}
			if stayed < min(len(ran), int(next)) {
				t.Fatalf("of %d that ran %d stay, at size %d", len(ran), stayed, next)
			}
			if got := int32(len(jobs.ChildrenOf[*corev1.Service](c.Children()))); got != next {
				t.Fatalf("there are %d Services, of %d", got, next)
			}
			for _, pod := range c.pods() {
				if pod.Status.Phase == corev1.PodPending && begin(pod) {
					c.Put(jobstest.Pod{Pod: pod.DeepCopy()}.Running().Pod)
				}
			}
		}
	})
}

// goOn lets pods go that are deleted, and reports whether there were any.
func (c *cluster) goOn() bool {
	return c.RunPods(replicas.IsTerminating, func(string) int32 { return 0 })
}
