package trainingjob

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// API returns the TrainingJob API. A TrainingJob that names no queue goes to the queue named default.
func API(s Settings) jobs.API[*breezeml.TrainingJob] {
	return jobs.API[*breezeml.TrainingJob]{
		Kind:     s.kind(),
		PodLabel: muster.JobUIDLabel,
		Describe: describe,
		Plan:     func(seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan { return plan(s, seen) },
		Watch: jobs.Watch{
			Owns: []client.Object{&corev1.Pod{}, &corev1.Service{}},
			Matters: jobs.PodChanges(func(was, is *corev1.Pod) bool {
				return restartsInPlace(was) != restartsInPlace(is)
			}),
			BatchDelay: jobs.PodBatchDelay,
		},
		Queueing: jobs.Queueing[*breezeml.TrainingJob]{
			Rule:  jobs.QueueRequired,
			Field: queueOf,
		},
		Reads: jobs.Reads[*breezeml.TrainingJob]{
			AwaitsNodes: func(job *breezeml.TrainingJob) bool { return limitOf(job) > 0 },
		},
		Abilities: jobs.Abilities{
			Resizes: true,
			Gangs:   true,
		},
	}
}
