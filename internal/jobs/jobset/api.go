package jobset

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// API is the JobSet API. A JobSet without a queue starts at once.
var API = jobs.API[*jobset.JobSet]{
	Kind:     kind,
	PodLabel: jobset.JobSetUIDKey,
	Describe: describe,
	Plan:     plan,
	Watch: jobs.Watch{
		Owns:    []client.Object{&batchv1.Job{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}},
		MadeFor: madeFor,
	},
	Queueing: jobs.Queueing[*jobset.JobSet]{
		Rule:       jobs.QueueOptional,
		Field:      func(js *jobset.JobSet) string { return js.Annotations[kueue.QueueAnnotation] },
		CreatesJob: createsJob,
	},
	Reads: jobs.Reads[*jobset.JobSet]{
		Related: related,
		Pods:    podsInPlace,
	},
	Abilities: jobs.Abilities{
		Resizes: true,
		Gangs:   true,
	},
}

// related returns the Service of the subdomain, which several JobSets can share, and the volume claims, which can
// outlive the JobSet. A finished JobSet needs neither.
func related(js *jobset.JobSet) []client.Object {
	if hasOutcome(js) {
		return nil
	}
	var out []client.Object
	if dnsHostnames(js) {
		out = append(out, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: subdomain(js)}})
	}
	for _, c := range claimsOf(js) {
		out = append(out, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: c.name(js)}})
	}
	return out
}

// createsJob reports whether the job is a batch Job of a name that the JobSet gives to its Jobs.
func createsJob(js *jobset.JobSet, other client.Object) bool {
	if _, isJob := other.(*batchv1.Job); !isJob || isForeign(js) {
		return false
	}
	name, index, ok := splitJobName(js, other.GetName())
	for rj := range pointers.To(js.Spec.ReplicatedJobs) {
		if ok && rj.Name == name {
			return index < rj.Replicas
		}
	}
	return false
}

// madeFor returns the UID of the queued JobSet that the operator has created the object for, "" if that is none. Only
// the operator sets the mark, and the labels of the pod template of a Job that runs cannot be changed. The cache drops
// the pod template of a Job that has ended.
func madeFor(object client.Object) types.UID {
	job, is := object.(*batchv1.Job)
	if !is || job.Annotations[muster.QueuedAnnotation] != muster.QueuedByOwner {
		return ""
	}
	return types.UID(cmp.Or(job.Spec.Template.Labels[jobset.JobSetUIDKey], job.Labels[jobset.JobSetUIDKey]))
}
