package trainingjob

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// cluster is a TrainingJob and its children in memory, with a small model of a kubelet.
type cluster struct {
	t        *rapid.T
	job      jobBuilder
	grant    jobs.Admission
	children map[string]client.Object
	now      time.Time
	made     int
	// ended says how it ended, once it has.
	ended *jobs.Outcome
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
	p := plan(settings, jobs.Seen[*breezeml.TrainingJob]{Job: c.job.TrainingJob, Admission: c.grant, Children: c.list(), Now: c.now})
	c.checkProgress(p)
	changed := false
	status := func() {
		after := then(p, c.job)
		if p.Status == nil || cmp.Equal(c.job.Status, after.Status, cmpopts.EquateEmpty()) || writes <= 0 {
			return
		}
		writes--
		changed = true
		c.checkStatus(after)
		c.job = after
	}
	if p.StatusFirst {
		status()
	}
	for _, w := range p.Writes {
		if writes--; writes < 0 {
			return changed
		}
		changed = true
		c.carryOut(w)
	}
	if !p.StatusFirst {
		status()
	}
	return changed
}

// checkProgress holds what the queue is told against what there is.
func (c *cluster) checkProgress(p jobs.Plan) {
	live := int32(0)
	for _, child := range c.children {
		if pod, ok := child.(*corev1.Pod); ok && !replicas.HasEnded(pod) {
			live++
		}
	}
	if p.Progress.Active != (live > 0) || p.Progress.Pods[worker] != live {
		c.t.Fatalf("with %d pods its queue is told %+v", live, p.Progress)
	}
}

func (c *cluster) checkStatus(after jobBuilder) {
	if over := outcome(after.TrainingJob); c.ended != nil && (over == nil || *over != *c.ended) {
		c.t.Fatalf("it ended %+v and now %+v", c.ended, over)
	} else {
		c.ended = over
	}
	s, size := &after.Status, sizesOf(after.TrainingJob)
	if s.CurrentSize != 0 && (s.CurrentSize < size.least || s.CurrentSize > size.most) || (s.CurrentSize > 0) != (s.Stage == breezeml.StageRunning) {
		c.t.Fatalf("it is %s with %d of %+v", s.Stage, s.CurrentSize, size)
	}
	var sum int32
	for index, n := range s.Restarts {
		if n < c.job.Status.Restarts[index] {
			c.t.Fatalf("worker %s has %d restarts after %d", index, n, c.job.Status.Restarts[index])
		}
		sum += n
	}
	if sum > *after.Spec.RunPolicy.BackoffLimit {
		c.t.Fatalf("workers were restarted %d times, of %d", sum, *after.Spec.RunPolicy.BackoffLimit)
	}
	if isTrue(after.TrainingJob, breezeml.JobRunning) && isTrue(after.TrainingJob, breezeml.JobRestarting) {
		c.t.Fatalf("conditions are %v", conditions(after))
	}
	if !s.QueuedTime.Equal(c.job.Status.QueuedTime) && c.job.Status.Stage != "" && c.job.Status.Stage != breezeml.StageRequeueCooldown && !isTrue(c.job.TrainingJob, breezeml.JobSuspended) {
		c.t.Fatalf("from %s its turn changes", c.job.Status.Stage)
	}
}

func (c *cluster) carryOut(w jobs.Write) {
	o := w.Object().DeepCopyObject().(client.Object)
	key := fmt.Sprintf("%T %s", o, o.GetName())
	had := c.children[key]
	switch w.Verb() {
	case "create":
		if had != nil {
			c.t.Fatalf("%s is made though there is one", key)
		}
		if c.ended != nil {
			c.t.Fatalf("%s is made after the end", key)
		}
		if pod, ok := o.(*corev1.Pod); ok {
			if !c.grant.MayStart() || suspended(c.job.TrainingJob) {
				c.t.Fatalf("%s starts while it must not", key)
			}
			c.made++
			pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprint(c.made)), metav1.NewTime(c.now)
			pod.Status.Phase = corev1.PodPending
		}
		c.children[key] = o
	case "delete":
		if had == nil || had.GetDeletionTimestamp() != nil {
			c.t.Fatalf("%s is deleted twice", key)
		}
		c.delete(had)
	default:
		c.t.Fatalf("a plan %ss %s", w.Verb(), key)
	}
}

// delete is the API server's: a pod that has ended goes at once.
func (c *cluster) delete(o client.Object) {
	pod, ok := o.(*corev1.Pod)
	if !ok || replicas.HasEnded(pod) || pod.Spec.NodeName == "" {
		delete(c.children, fmt.Sprintf("%T %s", o, o.GetName()))
		return
	}
	gone := pod.DeepCopy()
	gone.DeletionTimestamp, gone.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.now.Add(30*time.Second))), ptr.To[int64](30)
	c.children[fmt.Sprintf("%T %s", o, o.GetName())] = gone
}

func (c *cluster) list() []client.Object {
	var out []client.Object
	for _, key := range slices.Sorted(maps.Keys(c.children)) {
		out = append(out, c.children[key])
	}
	return out
}

// pods are those of them.
func (c *cluster) pods() []*corev1.Pod { return jobs.ChildrenOf[*corev1.Pod](c.list()) }

// runPods moves pods one step on. code is with what a program ends.
func (c *cluster) runPods(some func(name string) bool, code func(name string) int32) bool {
	changed := false
	c.now = c.now.Add(2 * time.Second)
	for _, key := range slices.Sorted(maps.Keys(c.children)) {
		seen, ok := c.children[key].(*corev1.Pod)
		if !ok || !some(seen.Name) {
			continue
		}
		b := podBuilder{seen.DeepCopy()}
		switch {
		case b.DeletionTimestamp != nil && b.Status.Phase == corev1.PodRunning:
			b.endedAt(143, c.now)
		case b.DeletionTimestamp != nil && replicas.HasEnded(b.Pod) && *b.DeletionGracePeriodSeconds > 0:
			b.DeletionTimestamp, b.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(c.now)), ptr.To[int64](0) // its node removes it
		case b.DeletionTimestamp != nil:
			delete(c.children, key)
			changed = true
			continue
		case replicas.HasEnded(b.Pod):
			continue
		case b.Spec.NodeName == "":
			b.Spec.NodeName = "n"
		case b.Status.Phase == corev1.PodPending:
			b.running()
		default:
			b.endedAt(code(b.Name), c.now)
		}
		c.children[key] = b.Pod
		changed = true
	}
	return changed
}

// TestEveryJobComesToOneEnd: whatever its sizes and policies, however its pods end, and
// whoever resizes, suspends, evicts, deletes or is killed after whichever write in
// between.
func TestEveryJobComesToOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{t: t, job: randomJob(t), grant: waiting, children: map[string]client.Object{}, now: now}
		size := sizesOf(c.job.TrainingJob)
		someSize := rapid.Int32Range(size.least, size.most)
		code := func(name string) int32 {
			return rapid.SampledFrom([]int32{0, 0, 0, 1, 137}).Draw(t, "exit code of "+name)
		}
		some := func(name string) bool { return rapid.Bool().Draw(t, name+" goes on") }
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
					if pod.DeletionTimestamp == nil && !replicas.HasEnded(pod) {
						c.delete(pod) // by hand
						break
					}
				}
			case 5:
				c.now = c.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "time passes"))
			case 6, 7:
				c.runPods(some, code)
			case 8:
				c.reconcile(rapid.IntRange(0, 4).Draw(t, "writes before it is killed"))
			default:
				c.reconcile(1000)
			}
		}
		c.job = c.job.suspended(false)
		c.grant = admitted(someSize.Draw(t, "size at last"))
		all := func(string) bool { return true }
		for turns := 0; c.ended == nil; turns++ {
			c.reconcile(1000)
			c.runPods(all, code)
			if c.job.Status.Stage == breezeml.StageRequeueCooldown {
				c.now = c.now.Add(4 * time.Hour)
			}
			if turns > 300 {
				t.Fatalf("no end after %d turns; status %+v", turns, c.job.Status)
			}
		}
		for turns := 0; c.reconcile(1000) || c.runPods(all, code); turns++ {
			if turns > 50 {
				t.Fatal("it does not come to rest")
			}
		}
		if p := see(t, c.now, c.job.TrainingJob, c.grant, c.list()); p.Progress.Active || p.Progress.Outcome == nil {
			t.Fatalf("at rest its queue is told %+v", p.Progress)
		}
	})
}

// TestAJobComesToItsSize: from whatever there is, without a running pod being given up
// for one that is not, or more than needed.
func TestAJobComesToItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{t: t, job: randomJob(t), children: map[string]client.Object{}, now: now}
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
			if got := int32(len(jobs.ChildrenOf[*corev1.Service](c.list()))); got != next {
				t.Fatalf("there are %d Services, of %d", got, next)
			}
			for _, pod := range c.pods() {
				if pod.Status.Phase == corev1.PodPending && begin(pod) {
					c.children["*v1.Pod "+pod.Name] = podBuilder{pod.DeepCopy()}.running().Pod
				}
			}
		}
	})
}

// goOn lets pods go that are deleted, and reports whether there were any.
func (c *cluster) goOn() bool {
	return c.runPods(func(name string) bool { return c.children["*v1.Pod "+name].GetDeletionTimestamp() != nil }, func(string) int32 { return 0 })
}
