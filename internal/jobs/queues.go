package jobs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// QueueRule says what happens to a job that names no queue.
type QueueRule int

const (
	// QueueOptional jobs start at once, as users of JobSet, batch Job and GenericJob expect, unless a user has created
	// a LocalQueue named default in the namespace.
	QueueOptional QueueRule = iota
	// QueueRequired jobs go to the queue named default.
	QueueRequired
)

// QueueFacts holds the queues that a job may refer to.
type QueueFacts struct {
	// Local holds the LocalQueues of the job's namespace by name, Cluster all ClusterQueues by name.
	Local   map[string]*kueue.LocalQueue
	Cluster map[string]*kueue.ClusterQueue
	// Namespace is the job's namespace.
	Namespace *corev1.Namespace
}

// Serves reports whether jobs of the namespace can go to the queue of this name.
func (q QueueFacts) Serves(name string) bool {
	return q.isThere(q.Local[name]) || workload.SelectsNamespace(q.Cluster[name], q.Namespace)
}

// isThere reports whether the LocalQueue exists and counts. One that Muster made for a ClusterQueue goes with it.
func (q QueueFacts) isThere(local *kueue.LocalQueue) bool {
	return local != nil && (!MadeByMuster(local) || q.Cluster[string(local.Spec.ClusterQueue)] != nil)
}

// Names returns the names of all queues that a job could name, sorted.
func (q QueueFacts) Names() []string {
	var names []string
	for name, local := range q.Local {
		if q.isThere(local) {
			names = append(names, name)
		}
	}
	for name := range q.Cluster {
		if q.Local[name] == nil && q.Serves(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// NotFound returns a message that the queue does not exist and which queues do, or "" if jobs of the namespace can go
// to it.
func (q QueueFacts) NotFound(name, namespace string) string {
	if q.Serves(name) {
		return ""
	}
	there := "there are no queues"
	if names := q.Names(); len(names) > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	return notFound(name, namespace) + there
}

func notFound(name, namespace string) string {
	return fmt.Sprintf("Queue %s is neither a LocalQueue of namespace %s nor a ClusterQueue that takes its jobs: ", name, namespace)
}

// IsNotFoundMessage reports whether the text is a message of NotFound, whatever queues it lists: queues come and go,
// and a new list is not worth a write for each waiting job.
func IsNotFoundMessage(text, name, namespace string) bool {
	return strings.HasPrefix(text, notFound(name, namespace))
}

// IsQueued reports whether a job with the rule QueueOptional that is not QueuedByOwner is to be queued when it is
// created: it names a queue, or a user has created the LocalQueue named default. local is that LocalQueue, nil if there
// is none.
func IsQueued(job client.Object, local *kueue.LocalQueue) bool {
	return job.GetLabels()[kueue.QueueLabel] != "" || job.GetAnnotations()[kueue.QueueAnnotation] != "" ||
		PrebuiltName(job) != "" || local != nil && !MadeByMuster(local)
}

func MadeByMuster(q *kueue.LocalQueue) bool {
	_, made := q.Labels[muster.MadeForLabel]
	return made
}

// PrebuiltName returns the name of the Workload that someone else made for the job, "" if the job gets a Workload of
// its own.
func PrebuiltName(job client.Object) string { return job.GetLabels()[kueue.PrebuiltWorkloadLabel] }

// IsNobodys reports whether the object was marked as a job that belongs to no other job, whatever owners it names.
func IsNobodys(object client.Object) bool {
	mark := object.GetAnnotations()[muster.QueuedAnnotation]
	return mark == muster.QueuedItself || mark == muster.NotQueued
}

// RefersTo reports whether the reference, which may be nil, is to an object of the kind, in any version.
func RefersTo(owner *metav1.OwnerReference, kind schema.GroupKind) bool {
	if owner == nil || owner.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == kind.Group
}
