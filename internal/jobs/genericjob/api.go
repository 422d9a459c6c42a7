package genericjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// kind is the kind GenericJob.
var kind = tensorstack.GroupVersion.WithKind("GenericJob")

// batchDelay is how long changes of pods are batched into one reconcile: too short for users to notice,
// and long enough that a job of thousands of pods is reconciled ten times a second, not once for each
// pod.
const batchDelay = 100 * time.Millisecond

// API is the GenericJob API. A GenericJob without a queue starts at once.
var API = jobs.API[*tensorstack.GenericJob]{
	Resizes:    true,
	Gangs:      true,
	Kind:       kind,
	Queue:      jobs.QueueOptional,
	New:        func() *tensorstack.GenericJob { return &tensorstack.GenericJob{} },
	Owns:       []client.Object{&corev1.Pod{}, &corev1.Service{}},
	Matters:    jobs.PodChanges(nil),
	BatchDelay: batchDelay,
	// Pods start and end one after the other, and the status lists each of them.
	StatusDelay: 5 * time.Second,
	PodLabels: func(uid types.UID) map[string]string {
		return map[string]string{muster.JobUIDLabel: string(uid)}
	},
	QueueField: queueOf,
	Pauses:     true,
	AsksKinds:  []schema.GroupResource{t9kPodGroups, volcanoPodGroups},
	Describe:   describe,
	Plan:       plan,
}

// describe returns what a GenericJob requests: one pod set for each type.
func describe(job *tensorstack.GenericJob, facts jobs.Facts) jobs.Description {
	d := jobs.Description{Queue: queueOf(job), Paused: paused(job)}
	if s := t9k(job); s != nil {
		d.Priority = ptr.To(s.Priority)
	}
	for i := range job.Spec.ReplicaSpecs {
		spec := &job.Spec.ReplicaSpecs[i]
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
		d.Mistake = jobs.RequestTopology(d.PodSets, func(int) jobs.Ranks { return jobs.Ranks{} })
	}
	return d
}

// restart returns the restart policy: OnFailure by default, with the spec's limit.
func restart(p tensorstack.RestartPolicy) replicas.Restart {
	return replicas.Restart{
		OnFailure: p.Policy != tensorstack.RestartNever,
		OnSuccess: p.Policy == tensorstack.RestartAlways,
		Limit:     p.Limit,
	}
}
