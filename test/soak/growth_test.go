package soak

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/workload"
)

// An elastic job grows as quota becomes free, also one that was scaled up while it runs. When it may do so beside
// others depends on much. So all others are deleted, and if its queue has enough quota then, the job must get all pods
// that it asks for.

// growth is what is expected of a job: pods of a pod set, by its index.
type growth struct {
	name   string
	at     int
	pods   int32
	vcJob  bool
	podSet string
}

// expectGrowth deletes all jobs but one that is elastic, if one runs, and waits until it has the pods that it asks for.
// A VCJob is scaled up for that, and down again.
func (r *round) expectGrowth() {
	r.Helper()
	g := r.grower()
	if g == nil {
		return
	}
	r.note("leaves only %s, which is to have %d pods of %s", g.name, g.pods, g.podSet)
	for _, n := range r.nodes {
		if n.state != up {
			r.setNode(n, up)
		}
	}
	r.deleteJobs(func(j *job) bool { return j.Name != g.name })
	if !g.vcJob {
		r.mustHave(g)
		return
	}
	least := r.scaleAlone(g)
	r.mustHave(g)
	g.pods = least
	r.scaleAlone(g)
	r.mustHave(g)
}

// scaleAlone gives the task of a VCJob so many replicas, and returns how many it needs.
func (r *round) scaleAlone(g *growth) (least int32) {
	o := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: g.name, Namespace: r.Namespace}}
	r.Get(o)
	i := slices.IndexFunc(o.Spec.Tasks, func(task volcano.TaskSpec) bool { return task.Name == g.podSet })
	task := &o.Spec.Tasks[i]
	least = max(1, ptr.Deref(task.MinAvailable, 0))
	if n, err := strconv.Atoi(task.Template.Annotations[muster.MinReplicasAnnotation]); err == nil {
		least = max(least, int32(n))
	}
	what := fmt.Sprintf("scales %s of %s to %d", g.podSet, g.name, g.pods)
	r.patch(what, o, map[string]any{fmt.Sprintf("/spec/tasks/%d/replicas", i): g.pods})
	return least
}

// mustHave waits until the job is the only one and has so many pods.
func (r *round) mustHave(g *growth) {
	r.Helper()
	var unmet []complaint
	for began := time.Now(); time.Since(began) < patience; r.sleep(time.Second) {
		if unmet = r.unlike(g); len(unmet) == 0 {
			r.note("%s has %d pods of %s after %s", g.name, g.pods, g.podSet, time.Since(began).Round(time.Second))
			return
		}
	}
	r.fails(fmt.Sprintf("%s after %s was to have %d pods alone", patience, g.name, g.pods), unmet)
}

func (r *round) unlike(g *growth) (out []complaint) {
	run := int32(0)
	for _, pod := range r.list(&corev1.PodList{}).(*corev1.PodList).Items {
		if jobOf(&pod) != g.name {
			out = append(out, complaint{jobOf(&pod), "pod " + pod.Name + " is left"})
		} else if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			run++
		}
	}
	for _, o := range r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items {
		switch now := sizes(&o); {
		case jobOf(&o) != g.name:
			out = append(out, complaint{jobOf(&o), "Workload " + o.Name + " is left"})
		case now == nil || now[g.at] != g.pods || run < g.pods:
			out = append(out, complaint{g.name, fmt.Sprintf("has quota for %v pods, and runs %d: %s", now, run, summary(&o))})
		}
	}
	return out
}

// grower returns what a job must have once it is alone: nil if there is no such job.
func (r *round) grower() *growth {
	all := r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items
	for i := range all {
		o := &all[i]
		at := elasticSet(o)
		if at < 0 || !runsOn(o) || workload.Reclaimed(o, &o.Spec.PodSets[at]) > 0 {
			continue // what has given quota back is not resized
		}
		set := &o.Spec.PodSets[at]
		g := &growth{name: jobOf(o), at: at, pods: workload.Wanted(o, set), podSet: string(set.Name)}
		g.vcJob = metav1.GetControllerOf(o).APIVersion == volcano.GroupVersion.String()
		if g.vcJob {
			g.pods += 1 + r.Int32N(3)
		}
		if sizes(o)[at] < g.pods && r.hasRoom(o, g) {
			return g
		}
	}
	return nil
}

// runsOn reports whether the Workload is admitted, and nothing is known by which it will not be for the next hour.
func runsOn(o *kueue.Workload) bool {
	if limit := o.Spec.MaximumExecutionTimeSeconds; limit != nil && *limit < 3600 {
		return false
	}
	return workload.IsAdmitted(o) && !workload.IsEvicted(o) && !workload.IsFinished(o) && workload.IsActive(o)
}

// elasticSet returns the index of the elastic pod set, if the queue resizes it wherever its nodes are, else -1. A
// TrainingJob has pauses of its own before it grows.
func elasticSet(o *kueue.Workload) int {
	if owner := metav1.GetControllerOf(o); owner == nil || owner.APIVersion == breezeml.GroupVersion.String() {
		return -1
	}
	for i := range o.Spec.PodSets {
		set := &o.Spec.PodSets[i]
		if set.Template.Annotations[muster.MinReplicasAnnotation] != "" && set.TopologyRequest == nil {
			return i
		}
	}
	return -1
}

// hasRoom reports whether the Workload's queue has the quota, and the nodes have room, for it when it has grown.
func (r *round) hasRoom(o *kueue.Workload, g *growth) bool {
	queues := r.list(&kueue.ClusterQueueList{}).(*kueue.ClusterQueueList).Items
	admission := o.Status.Admission
	own := slices.IndexFunc(queues, func(q kueue.ClusterQueue) bool { return q.Name == string(admission.ClusterQueue) })
	for i, flavor := range queues[own].Spec.ResourceGroups[0].Flavors {
		for k, quota := range flavor.Resources {
			needs, has := needed(o, g, flavor.Name, quota.Name), quota.NominalQuota.Value()+r.borrowable(queues, own, i, k)
			if needs > has || needs > r.surelyFits(o, flavor.Name, quota.Name) {
				return false
			}
		}
	}
	return true
}

// borrowable returns how much the queue at the index own can borrow of a resource of a flavor, both by index, while no
// other queue uses any: all queues of the round are in one tree of cohorts.
func (r *round) borrowable(queues []kueue.ClusterQueue, own, flavor, resource int) (sum int64) {
	quotaOf := func(q *kueue.ClusterQueue) *kueue.ResourceQuota {
		return &q.Spec.ResourceGroups[0].Flavors[flavor].Resources[resource]
	}
	for i := range queues {
		if i == own || !slices.ContainsFunc(r.queues, func(q *queue) bool { return q.Name == queues[i].Name }) {
			continue
		}
		quota := quotaOf(&queues[i])
		lends := ptr.Deref(quota.LendingLimit, quota.NominalQuota)
		sum += min(quota.NominalQuota.Value(), lends.Value())
	}
	if limit := quotaOf(&queues[own]).BorrowingLimit; limit != nil {
		return min(sum, limit.Value())
	}
	return sum
}

// needed returns what the Workload uses of a resource in a flavor when it has grown.
func needed(o *kueue.Workload, g *growth, flavor kueue.ResourceFlavorReference, name corev1.ResourceName) (sum int64) {
	for i, a := range o.Status.Admission.PodSetAssignments {
		if a.Flavors[name] != flavor {
			continue
		}
		pods := ptr.Deref(a.Count, 0)
		if i == g.at {
			pods = g.pods
		}
		sum += int64(pods) * perPod(&o.Spec.PodSets[i], name)
	}
	return sum
}

func perPod(set *kueue.PodSet, name corev1.ResourceName) int64 {
	request := set.Template.Spec.Containers[0].Resources.Requests[name]
	return request.Value()
}

// surelyFits is how much of the resource pods of this Workload can use on the flavor's nodes, even if each node has
// less of it left than a pod needs, and half of the nodes too little of another resource.
func (r *round) surelyFits(o *kueue.Workload, flavor kueue.ResourceFlavorReference, name corev1.ResourceName) int64 {
	largest, ofNode, nodes := int64(1), int64(cpusOfNode), int64(0)
	if name == gpu {
		ofNode = gpusOfNode
	}
	for i := range o.Spec.PodSets {
		largest = max(largest, perPod(&o.Spec.PodSets[i], name))
	}
	for _, n := range r.nodes {
		if r.followsNodes || n.flavor == string(flavor) {
			nodes++
		}
	}
	if r.gpus {
		nodes /= 2
	}
	return nodes * (ofNode - largest + 1)
}
