package jobs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Seen is the observed state from which a Plan follows.
type Seen[T client.Object] struct {
	// Job is the job as observed. It must not be modified.
	Job   T
	Facts Facts
	// Admission says whether the job may run, and with what.
	Admission Admission
	// Mistake says, for users, why the job is not queued as it is. Empty if it is.
	Mistake string
	// Children are the objects that the job controls. They must not be modified.
	Children []client.Object
	// Related holds the objects of Reads.Related that exist. They must not be modified.
	Related []client.Object
	// Pods holds the pods selected by Reads.Pods, as the cache keeps them.
	Pods []*corev1.Pod
	// Refusals holds the refusals of pods by the UID of the object that the pods were created for.
	Refusals map[types.UID][]Refusal
	// MissingPods is what was known before about the job's missing pods.
	MissingPods MissingPods
	// RefusedObjects says which of the objects that the job needs were refused when its last plan was carried out.
	RefusedObjects RefusedObjects
	// MustGoOn says that a write with OrGoOn was refused when the last plan was carried out.
	MustGoOn bool
	Now      time.Time
}

// ChildrenOf returns the children of type C.
func ChildrenOf[C client.Object](children []client.Object) []C {
	var out []C
	for _, child := range children {
		if c, ok := child.(C); ok {
			out = append(out, c)
		}
	}
	return out
}
