package genericjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// batchDelay is how long changes of pods are batched into one reconcile: too short for users to notice, and long enough
// that a job of thousands of pods is reconciled ten times a second, not once for each pod.
const batchDelay = 100 * time.Millisecond

// API is the GenericJob API. A GenericJob without a queue starts at once.
var API = jobs.API[*tensorstack.GenericJob]{
	Kind: kind,
	New:  func() *tensorstack.GenericJob { return &tensorstack.GenericJob{} },
	// Pods start and end one by one, and the status lists each of them.
	StatusDelay: 5 * time.Second,
	PodLabels: func(uid types.UID) map[string]string {
		return map[string]string{muster.JobUIDLabel: string(uid)}
	},
	Describe: describe,
	Plan:     plan,
	Watch: jobs.Watch{
		Owns:       []client.Object{&corev1.Pod{}, &corev1.Service{}},
		Matters:    jobs.PodChanges(nil),
		BatchDelay: batchDelay,
	},
	Queueing: jobs.Queueing[*tensorstack.GenericJob]{
		Rule:  jobs.QueueOptional,
		Field: queueOf,
	},
	Reads: jobs.Reads[*tensorstack.GenericJob]{
		Kinds: []schema.GroupResource{t9kPodGroups, volcanoPodGroups},
	},
	Abilities: jobs.Abilities{
		Resizes: true,
		Gangs:   true,
		Pauses:  true,
	},
}
