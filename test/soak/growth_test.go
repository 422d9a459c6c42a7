package soak

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// An elastic job grows as quota becomes free, also one that was scaled up while it runs. When it may do so beside
// others depends on much. So all others are deleted, and if its queue has enough quota of its own, the job must get all
// pods that it asks for.

// expectGrowth deletes all jobs but one that runs with fewer pods than it asks for, if there is one, and waits until it
// has them.
func (r *round) expectGrowth() {
	r.Helper()
	left := r.grower()
	if left == nil {
		return
	}
	name := jobOf(left)
	r.note("leaves only %s, which has %v pods and wants more", name, sizes(left))
	for _, n := range r.nodes {
		if n.state != up {
			r.setNode(n, up)
		}
	}
	r.deleteJobs(func(j *job) bool { return j.Name != name })
	var unmet []complaint
	for began := time.Now(); time.Since(began) < patience; r.sleep(time.Second) {
		if unmet = r.notGrown(name); len(unmet) == 0 {
			r.note("%s has grown after %s", name, time.Since(began).Round(time.Second))
			return
		}
	}
	r.fails(patience.String()+" after all other jobs were deleted", unmet)
}

// notGrown complains unless the job is the only one and has all its pods.
func (r *round) notGrown(name string) (out []complaint) {
	for _, o := range r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items {
		if at := elasticSet(&o); jobOf(&o) != name {
			out = append(out, complaint{jobOf(&o), "is left"})
		} else if workload.HoldsQuota(&o) && isSmall(&o, at) {
			out = append(out, complaint{name, fmt.Sprintf("has %v pods and does not grow: %s", sizes(&o), summary(&o))})
		}
	}
	return out
}

// grower returns the Workload of a job that must grow once it is alone: nil if there is none.
func (r *round) grower() *kueue.Workload {
	all := r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items
	for i := range all {
		o := &all[i]
		if at := elasticSet(o); at >= 0 && runsOn(o) && isSmall(o, at) && r.hasRoom(o, at) {
			return o
		}
	}
	return nil
}

// runsOn reports whether the Workload is admitted, and nothing is known by which it will not be.
func runsOn(o *kueue.Workload) bool {
	return workload.IsAdmitted(o) && !workload.IsEvicted(o) && !workload.IsFinished(o) && workload.IsActive(o)
}

// isSmall reports whether the elastic pod set has fewer pods than its job asks for. One that has given quota back is
// not resized.
func isSmall(o *kueue.Workload, at int) bool {
	set := &o.Spec.PodSets[at]
	return workload.Reclaimed(o, set) == 0 && sizes(o)[at] < workload.Wanted(o, set)
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

// hasRoom reports whether the Workload's queue has quota of its own, and the nodes have room, for all pods of it.
func (r *round) hasRoom(o *kueue.Workload, at int) bool {
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: string(o.Status.Admission.ClusterQueue)}}
	r.Get(queue)
	for _, flavor := range queue.Spec.ResourceGroups[0].Flavors {
		for _, quota := range flavor.Resources {
			needs := needed(o, at, flavor.Name, quota.Name)
			if needs > quota.NominalQuota.Value() || needs > r.surelyFits(o, flavor.Name, quota.Name) {
				return false
			}
		}
	}
	return true
}

// needed returns what the Workload uses of a resource in a flavor when its elastic pod set is as large as it can be.
func needed(o *kueue.Workload, at int, flavor kueue.ResourceFlavorReference, name corev1.ResourceName) (sum int64) {
	for i, a := range o.Status.Admission.PodSetAssignments {
		if a.Flavors[name] != flavor {
			continue
		}
		pods := ptr.Deref(a.Count, 0)
		if i == at {
			pods = workload.Wanted(o, &o.Spec.PodSets[i])
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
