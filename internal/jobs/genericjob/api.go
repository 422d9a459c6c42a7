package genericjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// API is the GenericJob API. A GenericJob without a queue starts at once.
var API = jobs.API[*tensorstack.GenericJob]{
	Kind: kind,
	// Pods start and end one by one, and the status lists each of them.
	StatusDelay: 5 * time.Second,
	PodLabel:    muster.JobUIDLabel,
	Describe:    describe,
	Plan:        plan,
	Watch: jobs.Watch{
		Owns:       []client.Object{&corev1.Pod{}, &corev1.Service{}},
		Matters:    jobs.PodChanges(nil),
		BatchDelay: jobs.PodBatchDelay,
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
