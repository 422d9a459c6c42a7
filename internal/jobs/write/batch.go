package write

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/replicas"
)

// Batch is what a plan writes for one job: its objects, its status and its events. The zero value is nothing.
type Batch struct {
	// First holds writes that are done before Writes, concurrently. If one of them fails, then of Writes only the changes
	// of the job's Workload are done.
	First []Write
	// Writes are done concurrently, in no particular order.
	Writes []Write
	// Status is the job with the status that it should have, nil to leave the status alone. It is written only if it
	// differs.
	Status client.Object
	// StatusFirst writes the status before the writes. It is for statuses that the writes depend on, such as a count of
	// attempts.
	StatusFirst bool
	// StatusOnError returns the status, and its event, to write in place of Status and Events if the API server refused
	// a write. If it is nil, Status and Events are written all the same.
	StatusOnError func(error) (client.Object, Event)
	// Events are recorded once Status is written.
	Events []Event
}

// Add adds writes to Writes.
func (b *Batch) Add(writes ...Write) { b.Writes = append(b.Writes, writes...) }

// AddFirst adds writes to First.
func (b *Batch) AddFirst(writes ...Write) { b.First = append(b.First, writes...) }

// AddEvents adds events to Events.
func (b *Batch) AddEvents(events ...Event) { b.Events = append(b.Events, events...) }

// DeletePods adds writes that delete the pods, but for the ones that are terminating already.
func (b *Batch) DeletePods(pods []*corev1.Pod) {
	for _, pod := range pods {
		if pod.DeletionTimestamp.IsZero() {
			b.Add(Delete(pod))
		}
	}
}

// RunOn returns the pods that use quota and are not being stopped, by this batch or before it.
func (b *Batch) RunOn(pods []*corev1.Pod) []*corev1.Pod {
	stopped := map[types.UID]bool{}
	for _, w := range b.Writes {
		if w.verb == VerbDelete {
			stopped[w.object.GetUID()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return replicas.IsFinished(pod) || replicas.IsTerminating(pod) || stopped[pod.UID]
	})
}

// ControlledBy adds the controller to what the batch makes of the child. A child that the batch deletes, or whose
// status it changes, gets its controller by the next plan.
func (b *Batch) ControlledBy(child client.Object, owner metav1.OwnerReference) {
	change := Change(child, child)
	at := slices.IndexFunc(b.Writes,
		func(w Write) bool { return w.verb != VerbCreate && w.object.GetUID() == child.GetUID() })
	if at >= 0 {
		change = b.Writes[at]
	}
	if change.verb != VerbChange {
		return
	}
	owned := change.object.DeepCopyObject().(client.Object)
	owned.SetOwnerReferences(append(owned.GetOwnerReferences(), owner))
	change.object = owned
	if at >= 0 {
		b.Writes[at] = change
	} else {
		b.Add(change)
	}
}
