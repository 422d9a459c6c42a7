package genericjob

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

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// cluster is a GenericJob and its children in memory, with a small model of a kubelet.
type cluster struct {
	t        *rapid.T
	job      *tensorstack.GenericJob
	grant    jobs.Admission
	children map[string]client.Object
	now      time.Time
	made     int
	// ended is the phase at the end, once there is one.
	ended tensorstack.JobPhase
	// elastic jobs list as many replicas as they are granted.
	elastic bool
}

func randomJob(t *rapid.T) *tensorstack.GenericJob {
	b := newJob()
	types := []string{"master", "worker"}[:rapid.IntRange(1, 2).Draw(t, "types")]
	for _, of := range types {
		b = b.with(of, rapid.Int32Range(1, 3).Draw(t, "replicas of "+of), tensorstack.RestartPolicy{
			Policy: rapid.SampledFrom([]tensorstack.RestartPolicyType{"", tensorstack.RestartNever, tensorstack.RestartOnFailure, tensorstack.RestartAlways}).Draw(t, "policy of "+of),
			Limit:  rapid.Int32Range(0, 2).Draw(t, "limit of "+of),
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
	b = b.succeedsBy(rapid.SliceOfN(randomRule, 0, 2).Draw(t, "success")...).failsBy(rapid.SliceOfN(randomRule, 0, 2).Draw(t, "failure")...)
	b = b.cleans(rapid.SampledFrom([]tensorstack.CleanUpPolicy{tensorstack.CleanUpNone, tensorstack.CleanUpUnfinished, tensorstack.CleanUpAll}).Draw(t, "clean-up"))
	if rapid.Bool().Draw(t, "service") {
		b = b.port("http", 80)
	}
	return b.GenericJob
}

// reconcile plans, carries out as many writes as it may before it is killed, and holds
// them against what must never happen. It reports whether anything changed.
func (c *cluster) reconcile(writes int) bool {
	seen := jobs.Seen[*tensorstack.GenericJob]{Job: c.job, Admission: c.grant, Children: c.list(), Now: c.now}
	p := plan(seen)
	changed := false
	status := func() {
		if p.Status == nil {
			return
		}
		after := p.Status.(*tensorstack.GenericJob).Status
		if cmp.Equal(c.job.Status, after, cmpopts.EquateEmpty()) || writes <= 0 {
			return
		}
		writes--
		changed = true
		c.checkStatus(&after)
		c.job = c.job.DeepCopy()
		c.job.Status = *after.DeepCopy()
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

func (c *cluster) checkStatus(after *tensorstack.GenericJobStatus) {
	if c.elastic {
		return
	}
	if c.ended != "" && after.Phase != c.ended {
		c.t.Fatalf("it ended %s and is %s now", c.ended, after.Phase)
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
				c.t.Fatalf("%s has %d restarts after %d", r.Name, r.RestartCount, c.job.Status.Tasks[i].Replicas[j].RestartCount)
			}
			if r.RestartCount > spec.RestartPolicy.Limit {
				c.t.Fatalf("%s was restarted %d times, of %d", r.Name, r.RestartCount, spec.RestartPolicy.Limit)
			}
			sum += r.RestartCount
		}
		if sum != task.RestartCount {
			c.t.Fatalf("%d restarts of %s are told, and there were %d", task.RestartCount, task.Type, sum)
		}
	}
	a := after.Aggregate
	if sum := a.Creating + a.Pending + a.Running + a.Succeeded + a.Failed + a.Unknown + a.Deleted; sum != all {
		c.t.Fatalf("%d of %d replicas are counted: %+v", sum, all, a)
	}
	for i, kind := range conditionOrder {
		if after.Conditions[i].Type != kind {
			c.t.Fatalf("conditions are in the order %+v", after.Conditions)
		}
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
		if c.ended != "" {
			c.t.Fatalf("%s is made after the end", key)
		}
		if pod, ok := o.(*corev1.Pod); ok {
			if !c.grant.MayStart() || paused(c.job) {
				c.t.Fatalf("%s starts while it must not", key)
			}
			c.made++
			pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprint(c.made)), metav1.NewTime(c.now)
			pod.Status.Phase = corev1.PodPending
		}
		c.children[key] = o
	case "delete":
		if had.GetDeletionTimestamp() != nil {
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

// runPods moves pods one step on. fails says who fails in the end.
func (c *cluster) runPods(some, fails func(name string) bool) bool {
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
			b.endedAt(0, c.now) // a program that heeds the signal
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
		case fails(b.Name):
			b.endedAt(1, c.now)
		default:
			b.endedAt(0, c.now)
		}
		c.children[key] = b.Pod
		changed = true
	}
	return changed
}

func (c *cluster) setPaused(is bool) {
	c.job = c.job.DeepCopy()
	c.job.Spec.RunMode = &tensorstack.RunMode{Pause: &tensorstack.PauseMode{Enabled: is}}
}

// TestEveryJobComesToOneEnd: whatever its rules and policies, however its pods end, and
// whoever pauses, evicts, deletes or is killed after whichever write in between.
func TestEveryJobComesToOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queued := rapid.Bool().Draw(t, "queued")
		c := &cluster{t: t, job: randomJob(t), grant: unqueued, children: map[string]client.Object{}, now: now}
		if queued {
			c.grant = waiting
		}
		fails := func(name string) bool { return rapid.IntRange(0, 2).Draw(t, name+" fails if 0") == 0 }
		some := func(name string) bool { return rapid.Bool().Draw(t, name+" goes on") }
		for range rapid.IntRange(0, 40).Draw(t, "turbulent steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				c.setPaused(!paused(c.job))
			case 1:
				if queued {
					c.grant = rapid.SampledFrom([]jobs.Admission{waiting, admitted, stopping}).Draw(t, "grant")
				}
			case 2:
				for _, child := range c.list() {
					if pod, ok := child.(*corev1.Pod); ok && pod.DeletionTimestamp == nil && !replicas.HasEnded(pod) {
						c.delete(pod) // by hand
						break
					}
				}
			case 3, 4, 5:
				c.runPods(some, fails)
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
		all := func(string) bool { return true }
		for turns := 0; ; turns++ {
			planned := c.reconcile(1000)
			if ran := c.runPods(all, fails); !planned && !ran {
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
		if p := plan(jobs.Seen[*tensorstack.GenericJob]{Job: c.job, Admission: c.grant, Children: c.list(), Now: c.now}); p.Progress.Active || p.Progress.Outcome == nil {
			t.Fatalf("at rest its queue is told %+v", p.Progress)
		}
	})
}

// TestWhoMustNotRunComesToRestWithoutPods: paused, or without quota, however it got
// there.
func TestWhoMustNotRunComesToRestWithoutPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{t: t, job: randomJob(t), grant: admitted, children: map[string]client.Object{}, now: now}
		never := func(string) bool { return false }
		some := func(name string) bool { return rapid.Bool().Draw(t, name+" goes on") }
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			c.reconcile(rapid.IntRange(0, 6).Draw(t, "writes before it is killed"))
			for _, key := range slices.Sorted(maps.Keys(c.children)) {
				if b, ok := c.children[key].(*corev1.Pod); ok && some(b.Name) && b.DeletionTimestamp == nil {
					c.children[key] = podBuilder{b.DeepCopy()}.running().Pod
				}
			}
		}
		if rapid.Bool().Draw(t, "paused") {
			c.setPaused(true)
		} else {
			c.grant = rapid.SampledFrom([]jobs.Admission{waiting, stopping}).Draw(t, "grant")
		}
		for turns := 0; c.reconcile(1000) || c.runPods(func(name string) bool {
			return c.children["*v1.Pod "+name].GetDeletionTimestamp() != nil
		}, never); turns++ {
			if turns > 50 {
				t.Fatal("it does not come to rest")
			}
		}
		if p := see(t, c.job, c.grant, c.list()); p.Progress.Active || len(p.Writes) > 0 {
			t.Fatalf("at rest its queue is told %+v, and it would %v", p.Progress, writes(p))
		}
		for _, child := range c.list() {
			if pod, ok := child.(*corev1.Pod); ok {
				t.Fatalf("%s is there, %s", pod.Name, pod.Status.Phase)
			}
		}
	})
}
