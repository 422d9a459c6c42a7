package genericjob

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// Resources that are served where the scheduler that uses them is installed.
var (
	t9kPodGroups     = schema.GroupResource{Group: "scheduler.tensorstack.dev", Resource: "podgroups"}
	volcanoPodGroups = schema.GroupResource{Group: "scheduling.volcano.sh", Resource: "podgroups"}
)

// volcanoSchedulerName is Volcano's schedulerName in pod specs.
const volcanoSchedulerName = "volcano"

// t9k returns the t9kScheduler section, nil if there is none.
func t9k(job *tensorstack.GenericJob) *tensorstack.T9kScheduler {
	if job.Spec.Scheduler == nil {
		return nil
	}
	return job.Spec.Scheduler.T9kScheduler
}

// queueOf returns the queue of the t9kScheduler section, "" without one.
func queueOf(job *tensorstack.GenericJob) string {
	if s := t9k(job); s != nil {
		return cmp.Or(s.Queue, tensorstack.DefaultQueue)
	}
	return ""
}

// schedulerName returns the scheduler for a pod, given the name in its template; "" for the default.
// t9k-scheduler and Volcano are used only where they are installed, as no other scheduler would bind
// the pod; Muster's admission has already formed the gang.
func schedulerName(job *tensorstack.GenericJob, named string, facts jobs.Facts) string {
	if t9k(job) != nil && (named == "" || named == corev1.DefaultSchedulerName) {
		named = tensorstack.T9kSchedulerName
	}
	switch {
	case named == tensorstack.T9kSchedulerName && !facts.Served[t9kPodGroups],
		named == volcanoSchedulerName && !facts.Served[volcanoPodGroups]:
		return ""
	}
	return named
}

// schedulerLabels returns the labels for pods of a job with a t9kScheduler section.
func schedulerLabels(job *tensorstack.GenericJob, replicaType string) map[string]string {
	if t9k(job) == nil {
		return nil
	}
	return map[string]string{
		tensorstack.GroupNameLabel: job.Name,
		tensorstack.QueueLabel:     queueOf(job),
		tensorstack.RoleLabel:      replicaType,
	}
}

// podGroup returns the PodGroup for t9k-scheduler, nil if the job does not use it or it is not installed.
func podGroup(job *tensorstack.GenericJob, facts jobs.Facts) *unstructured.Unstructured {
	s := t9k(job)
	if s == nil || !facts.Served[t9kPodGroups] {
		return nil
	}
	var all int64
	var roles []any
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		least := int64(boundsOf(spec).Least)
		all += least
		roles = append(roles, map[string]any{"name": spec.Type, "minMember": least})
	}
	group := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"minMember": all, "roles": roles, "queue": queueOf(job), "priority": int64(s.Priority)},
	}}
	group.SetGroupVersionKind(schema.GroupVersionKind{Group: t9kPodGroups.Group, Version: "v1beta1", Kind: "PodGroup"})
	group.SetName(job.Name)
	group.SetNamespace(job.Namespace)
	group.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, kind)})
	return group
}
