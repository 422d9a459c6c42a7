package soak

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/workload"
)

// The tasks of VCJobs are scaled while they run, and some start without pods of a task.

// taskComplaints: no task of a VCJob runs more pods, or holds quota for more, than it has by now.
func (r *round) taskComplaints(workloads []kueue.Workload, pods []corev1.Pod) (out []complaint) {
	for _, j := range r.list(&volcano.JobList{}).(*volcano.JobList).Items {
		for _, task := range j.Spec.Tasks {
			run, held := int32(0), quotaOf(workloads, &j, task.Name)
			for i := range pods {
				if strings.HasPrefix(pods[i].Name, j.Name+"-"+task.Name+"-") && pods[i].Status.Phase == corev1.PodRunning {
					run++
				}
			}
			if run > task.Replicas || held > task.Replicas {
				out = append(out, complaint{j.Name, fmt.Sprintf("task %s has %d replicas, and runs %d pods with quota for %d",
					task.Name, task.Replicas, run, held)})
			}
		}
	}
	return out
}

// quotaOf returns for how many pods of the task quota is held.
func quotaOf(workloads []kueue.Workload, j *volcano.Job, task string) (held int32) {
	for i := range workloads {
		o := &workloads[i]
		if !metav1.IsControlledBy(o, j) || o.Status.Admission == nil || workload.IsFinished(o) {
			continue
		}
		for _, a := range o.Status.Admission.PodSetAssignments {
			if string(a.Name) == task {
				left, _ := workload.PodsHoldingQuota(o, &a)
				held += left
			}
		}
	}
	return held
}

// togetherComplaints: a Workload of which pod sets may have no pods holds quota for as many pods as must run together,
// of whichever pod sets. Only a VCJob has such a Workload, whatever its user wrote.
func togetherComplaints(o *kueue.Workload) (out []complaint) {
	together, given := int32(0), int32(0)
	for i := range o.Spec.PodSets {
		n, _ := strconv.ParseInt(o.Spec.PodSets[i].Template.Annotations[muster.MinPodsAnnotation], 10, 32)
		together = max(together, int32(n))
		given += workload.Reclaimed(o, &o.Spec.PodSets[i])
	}
	if owner := metav1.GetControllerOf(o); together > 0 && owner.APIVersion != volcano.GroupVersion.String() {
		out = append(out, complaint{jobOf(o), "its Workload " + o.Name + " has the annotation " + muster.MinPodsAnnotation})
	}
	if o.Status.Admission == nil || workload.IsFinished(o) {
		return out
	}
	for _, a := range o.Status.Admission.PodSetAssignments {
		given += ptr.Deref(a.Count, 0)
	}
	if given < together {
		out = append(out, complaint{jobOf(o), fmt.Sprintf("has quota for %d pods, and %d must run", given, together)})
	}
	return out
}
