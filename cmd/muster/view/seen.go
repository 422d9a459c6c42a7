package view

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Seen is what the API server said at one moment. A kind that the cluster does not serve is empty. The functions of
// this package read it and keep pointers into it; nobody may change it afterwards.
type Seen struct {
	Workloads     []kueue.Workload
	ClusterQueues []kueue.ClusterQueue
	LocalQueues   []kueue.LocalQueue
	JobSets       []jobset.JobSet
	Jobs          []batchv1.Job
	// Pods are those of the one job that is explained; lists of jobs do without.
	Pods []corev1.Pod
}

// owners finds what belongs to an object by the object's UID.
type owners struct {
	workloads map[types.UID]*kueue.Workload
	jobs      map[types.UID][]*batchv1.Job
}

func (s *Seen) owners() owners {
	o := owners{
		workloads: make(map[types.UID]*kueue.Workload, len(s.Workloads)),
		jobs:      map[types.UID][]*batchv1.Job{},
	}
	for i := range s.Workloads {
		workload := &s.Workloads[i]
		for _, owner := range workload.OwnerReferences {
			// A job that is queued again under a new Workload keeps the finished one for a while.
			if known := o.workloads[owner.UID]; known == nil || newer(workload, known) {
				o.workloads[owner.UID] = workload
			}
		}
	}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if owner := metav1.GetControllerOf(job); owner != nil {
			o.jobs[owner.UID] = append(o.jobs[owner.UID], job)
		}
	}
	return o
}

func newer(a, b *kueue.Workload) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name > b.Name
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}
