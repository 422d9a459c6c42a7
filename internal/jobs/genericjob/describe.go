package genericjob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// describe returns what a GenericJob requests: one pod set for each type.
func describe(job *tensorstack.GenericJob, facts jobs.Facts) jobs.Description {
	d := jobs.Description{Queue: queueOf(job), Paused: paused(job)}
	if s := t9k(job); s != nil {
		d.Priority = ptr.To(s.Priority)
	}
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		template := *spec.Template.DeepCopy()
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		template.Spec.SchedulerName = schedulerName(job, template.Spec.SchedulerName, facts)
		podSet := kueue.PodSet{Name: kueue.PodSetReference(spec.Type), Count: count(spec), Template: template}
		boundsOf(spec).Ask(&podSet)
		d.PodSets = append(d.PodSets, podSet)
	}
	if problem := badSize(job); problem != "" {
		d.Mistake = jobs.ImmutableMistake(problem)
	} else {
		d.Mistake = jobs.RequestTopology(d.PodSets, nil)
	}
	return d
}
