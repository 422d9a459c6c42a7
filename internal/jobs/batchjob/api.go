package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// API is the batch/v1 Job API. Jobs without a queue are left alone.
var API = jobs.API[*batchv1.Job]{
	Kind:     batchv1.SchemeGroupVersion.WithKind("Job"),
	PodLabel: batchv1.ControllerUidLabel,
	Describe: describe,
	Plan:     plan,
	Queueing: jobs.Queueing[*batchv1.Job]{
		Rule:            jobs.QueueOptional,
		External:        true,
		RequeuesChanged: true,
		Field:           func(job *batchv1.Job) string { return job.Annotations[kueue.QueueAnnotation] },
	},
	Reads: jobs.Reads[*batchv1.Job]{
		Pods: completedPods,
	},
	Abilities: jobs.Abilities{
		Resizes: true,
	},
}

func suspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }
