package jobset

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// kind is the GroupVersionKind of JobSets.
var kind = jobset.GroupVersion.WithKind("JobSet")

// API is the JobSet API. A JobSet without a queue starts at once.
var API = jobs.API[*jobset.JobSet]{
	Kind:       kind,
	Queue:      jobs.QueueOptional,
	Resizes:    true,
	New:        func() *jobset.JobSet { return &jobset.JobSet{} },
	Owns:       []client.Object{&batchv1.Job{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}},
	QueueField: func(js *jobset.JobSet) string { return js.Annotations[kueue.QueueAnnotation] },
	PodLabels: func(uid types.UID) map[string]string {
		return map[string]string{jobset.JobSetUIDKey: string(uid)}
	},
	Related:    related,
	Gangs:      true,
	Pods:       podsInPlace,
	CreatesJob: createsJob,
	MadeFor:    madeFor,
	Describe:   describe,
	Plan:       plan,
}

// related returns the Service of the subdomain, which several JobSets can share, and the volume claims, which can
// outlive the JobSet. A finished JobSet needs neither.
func related(js *jobset.JobSet) []client.Object {
	if finished(js) {
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

// describe returns what a JobSet asks for: one pod set for each replicated job.
func describe(js *jobset.JobSet, facts jobs.Facts) jobs.Description {
	d := jobs.Description{
		Foreign: isForeign(js),
		Queue:   js.Annotations[kueue.QueueAnnotation],
	}
	if tooLarge(js) != "" {
		return d // it queues for nothing: a condition says why
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		d.PodSets = append(d.PodSets, kueue.PodSet{
			Name:     kueue.PodSetReference(rj.Name),
			Count:    podCount(rj),
			Template: podTemplate(rj),
		})
		boundsOf(js, rj).Ask(&d.PodSets[i])
	}
	d.Mistake = jobs.RequestTopology(d.PodSets, func(i int) jobs.Ranks { return ranksOf(&js.Spec.ReplicatedJobs[i]) })
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if problem := exclusionOf(js, rj).request(&d.PodSets[i], js, rj); problem != "" {
			d.Mistake = jobs.BadTopology(&d.PodSets[i], problem)
		}
	}
	if why := noAgent(js, facts.Agent); why != "" {
		d.Mistake = ptr.To(jobs.Obstacle(jobs.InvalidJob, why))
	}
	return d
}

// isForeign reports whether another controller runs the JobSet.
func isForeign(js *jobset.JobSet) bool {
	return js.Spec.ManagedBy != nil && *js.Spec.ManagedBy != jobset.JobSetControllerName
}
