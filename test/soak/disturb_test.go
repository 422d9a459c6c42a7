package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
)

// mostJobs is how many jobs there are at a time.
const mostJobs = 30

// disturb disturbs the world for so long.
func (r *round) disturb(lasts time.Duration) {
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); {
		left := slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return j.deleted })
		switch n := r.IntN(100); {
		case n < 38 || len(left) == 0:
			r.addJob()
		case n < 49:
			r.deleteJob(one(r, left...))
		case n < 56:
			r.resizeJob(one(r, left...))
		case n < 61:
			r.scaleLateJob(left)
		case n < 62:
			r.changeWhole(one(r, left...))
		case n < 66:
			r.pauseJob(one(r, left...), r.chance(50))
		case n < 72:
			r.setActive(r.chance(40))
		case n < 74:
			r.changeClass(one(r, left...))
		case n < 76:
			r.moveJob(one(r, left...), one(r, r.queues...))
		case n < 80:
			r.deletePod()
		case n < 88:
			r.changeNode(one(r, r.nodes...))
		case n < 93:
			r.changeQuota(one(r, r.queues...))
		case n < 96:
			r.stopQueue(one(r, r.queues...), r.chance(50), one(r, kueue.Hold, kueue.HoldAndDrain, kueue.None, kueue.None))
		default:
			r.disturbOperators()
		}
		select {
		case <-time.After(time.Duration(r.IntN(500)) * time.Millisecond): // a pace, not a wait for anything
		case <-r.Context().Done():
			r.Fatal(r.Context().Err())
		}
	}
}

// heal ends what keeps the world from settling: quotas are what they were, queues are open, nodes that were silent or
// gone are back or gone for good. Some nodes stay cordoned, and jobs stay paused.
func (r *round) heal() {
	r.note("heals")
	for _, q := range r.queues {
		r.setQuota(q, q.nominal)
		r.stopQueue(q, false, kueue.None)
		r.stopQueue(q, true, kueue.None)
	}
	for _, n := range r.nodes {
		if n.state == silent || n.state == gone && r.chance(50) {
			r.setNode(n, up)
		}
	}
	r.resumeOperators()
}

// tolerates fails the round for any error but those that a user gets for a change that comes too late, or that the
// API does not allow for this job.
func (r *round) tolerates(what string, err error) {
	r.Helper()
	switch {
	case err == nil:
		r.note("%s", what)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		r.note("%s: refused: %.150v", what, err)
	default:
		r.Fatalf("%s: %v", what, err)
	}
}

// patch changes an object by a JSON patch that sets the values, by their paths.
func (r *round) patch(what string, o client.Object, values map[string]any) {
	r.Helper()
	var steps []map[string]any
	for _, path := range slices.Sorted(maps.Keys(values)) {
		steps = append(steps, map[string]any{"op": "add", "path": path, "value": values[path]})
	}
	text, err := json.Marshal(steps)
	if err != nil {
		r.Fatal(err)
	}
	r.tolerates(what, r.Client.Patch(r.Context(), o.DeepCopyObject().(client.Object),
		client.RawPatch(types.JSONPatchType, text)))
}

func (r *round) addJob() {
	if r.journal.unfinished() >= mostJobs {
		return
	}
	j := r.newJob()
	j.object = r.render(j)
	r.jobs = append(r.jobs, j)
	r.tolerates(fmt.Sprintf("creates %s: %s", j.Name, j.title()),
		r.Client.Create(r.Context(), j.object.DeepCopy()))
}

func (r *round) deleteJob(j *job) {
	j.deleted = true
	how := one(r, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground)
	r.tolerates(fmt.Sprintf("deletes %s, %s", j.Name, how),
		r.Client.Delete(r.Context(), j.object.DeepCopy(), client.PropagationPolicy(how)))
}

func (r *round) resizeJob(j *job) {
	if j.Resource == vcJobs {
		r.scaleTask(j)
		return
	}
	pods, values := 1+r.IntN(7), map[string]any{}
	for _, path := range sizeFields[j.Resource] {
		values[path] = pods
	}
	r.patch(fmt.Sprintf("resizes %s to %d", j.Name, pods), j.object, values)
}

// scaleLateJob scales a task of one of the last VCJobs, which may be running.
func (r *round) scaleLateJob(all []*job) {
	all = slices.DeleteFunc(slices.Clone(all), func(j *job) bool { return j.Resource != vcJobs })
	if len(all) > 0 {
		r.scaleTask(one(r, all[max(0, len(all)-6):]...))
	}
}

// scaleTask gives a task of a VCJob more pods than it queued with, or fewer, or none. All or some of them must run
// together.
func (r *round) scaleTask(j *job) {
	task, pods := 0, r.IntN(10)
	switch {
	case j.Drivers != nil && r.chance(30):
		task, pods = 1, r.IntN(4)
	case j.Annotations[muster.MinReplicasAnnotation] != "":
		pods += j.Least
	}
	path, values := fmt.Sprintf("/spec/tasks/%d/", task), map[string]any{}
	least := one(r, pods, r.IntN(pods+1), r.IntN(pods+1))
	values[path+"replicas"], values[path+"minAvailable"] = pods, least
	if j.Together > 0 {
		values["/spec/minAvailable"] = r.IntN(pods + 1) // 0 is as if absent
	}
	r.patch(fmt.Sprintf("scales task %d of %s: %v", task, j.Name, values), j.object, values)
}

// pauseJob pauses a job in the way of its API, or resumes it. A queue reverts what it decides itself.
func (r *round) pauseJob(j *job, paused bool) {
	what := fmt.Sprintf("pauses %s: %t", j.Name, paused)
	switch j.Resource {
	case jobs, jobSets:
		r.patch(what, j.object, map[string]any{"/spec/suspend": paused})
	case genericJobs:
		mode := map[string]any{"pause": map[string]any{"enabled": paused}}
		r.patch(what, j.object, map[string]any{"/spec/runMode": mode})
	case vcJobs:
		action := bus.ResumeJobAction
		if paused {
			action = one(r, bus.AbortJobAction, bus.RestartJobAction)
		}
		r.tolerates(what, r.Client.Create(r.Context(),
			&bus.Command{ObjectMeta: metav1.ObjectMeta{GenerateName: "command-", Namespace: r.Namespace}, Action: action,
				TargetObject: &metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: j.Name}}))
	}
}

// setActive activates or deactivates a Workload.
func (r *round) setActive(active bool) {
	if all := r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items; len(all) > 0 {
		o := one(r, all...)
		r.patch(fmt.Sprintf("activates %s: %t", o.Name, active), &o, map[string]any{"/spec/active": active})
	}
}

func (r *round) changeClass(j *job) {
	class := r.Namespace + "-" + one(r, "low", "normal", "high")
	r.patch(fmt.Sprintf("gives %s the priority %s", j.Name, class), j.object,
		map[string]any{"/metadata/labels/kueue.x-k8s.io~1priority-class": class})
}

// moveJob names another queue in the job's label.
func (r *round) moveJob(j *job, to *queue) {
	r.patch(fmt.Sprintf("moves %s to %s", j.Name, to.short), j.object,
		map[string]any{"/metadata/labels/kueue.x-k8s.io~1queue-name": to.short})
}

func (r *round) deletePod() {
	if all := r.list(&corev1.PodList{}).(*corev1.PodList).Items; len(all) > 0 {
		pod := one(r, all...)
		r.tolerates("deletes pod "+pod.Name, r.Client.Delete(r.Context(), &pod))
	}
}

// changeNode takes a node that is up away in one of several ways, and gives any other back.
func (r *round) changeNode(n *node) {
	if n.state != up {
		r.setNode(n, up)
		return
	}
	r.setNode(n, one(r, cordoned, cordoned, silent, gone))
}

func (r *round) setNode(n *node, state nodeState) {
	what := fmt.Sprintf("node %s was %s, is %s", n.name, n.state, state)
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	switch before := n.state; {
	case before == gone:
		r.createNode(n)
	case state == gone:
		r.Delete(o)
	case before == silent || state == silent:
		status := corev1.ConditionTrue
		if state == silent {
			status = corev1.ConditionUnknown
		}
		r.PatchStatus(o, fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %q, "reason": "Soak", "lastTransitionTime": %q, "lastHeartbeatTime": %[2]q}]}}`,
			status, time.Now().UTC().Format(time.RFC3339)))
	default:
		r.Patch(o, fmt.Sprintf(`{"spec": {"unschedulable": %t}}`, state == cordoned))
	}
	n.state = state
	r.note("%s", what)
}

// changeQuota lowers the quota of a queue, or restores it.
func (r *round) changeQuota(q *queue) {
	r.setQuota(q, one(r, q.nominal, q.nominal/2, 0))
}

func (r *round) setQuota(q *queue, nominal int64) {
	if r.followsNodes {
		return // the operator sets it
	}
	o := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.Name}}
	r.Get(o)
	before := o.DeepCopy()
	for i := range o.Spec.ResourceGroups[0].Flavors {
		quota := &o.Spec.ResourceGroups[0].Flavors[i].Resources[0]
		quota.NominalQuota = *resource.NewQuantity(nominal, resource.DecimalSI)
		quota.LendingLimit = q.Spec.ResourceGroups[0].Flavors[i].Resources[0].LendingLimit
		if quota.LendingLimit != nil && quota.LendingLimit.Value() > nominal {
			quota.LendingLimit = &quota.NominalQuota
		}
	}
	r.tolerates(fmt.Sprintf("quota of %s is %d", q.short, nominal),
		r.Client.Patch(r.Context(), o, client.MergeFrom(before)))
}

// stopQueue sets the stop policy of the ClusterQueue or its LocalQueue.
func (r *round) stopQueue(q *queue, local bool, policy kueue.StopPolicy) {
	var o client.Object = &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.Name}}
	if local {
		o = &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: q.short, Namespace: r.Namespace}}
	}
	r.patch(fmt.Sprintf("stop policy of %s (LocalQueue: %t) is %s", q.short, local, policy), o,
		map[string]any{"/spec/stopPolicy": policy})
}

func (r *round) deleteAllJobs() {
	r.note("deletes all jobs")
	r.deleteJobs(func(*job) bool { return true })
}

func (r *round) deleteJobs(which func(*job) bool) {
	for _, j := range r.jobs {
		if !which(j) {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(r.Context(), j.object.DeepCopy(),
			client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
			r.Fatal(err)
		}
	}
}

// list reads the round's objects of a kind.
func (r *round) list(list client.ObjectList) client.ObjectList {
	r.Helper()
	if err := r.Client.List(r.Context(), list, client.InNamespace(r.Namespace)); err != nil {
		r.Fatal(err)
	}
	return list
}
