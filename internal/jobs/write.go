package jobs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Write is one change of the cluster. Make one with Create, Change, Apply or Delete.
type Write struct {
	verb        verb
	manager     string
	object      client.Object
	base        client.Object
	propagation metav1.DeletionPropagation
	onFailure   string
	onSuccess   *Event
	fill        func(client.Object) error
	// unsay takes out of the status what it says that the write did.
	unsay func(status client.Object)
	// despiteStatus has a change be done whatever was written to the status since.
	despiteStatus bool
}

type verb string

const (
	verbCreate       verb = "create"
	verbChange       verb = "change"
	verbChangeStatus verb = "change status of"
	verbApply        verb = "apply"
	verbDelete       verb = "delete"
	verbRemove       verb = "remove"
	verbRemoveAll    verb = "remove all"
)

// Create makes the object. One of the same name that the job controls already is
// as good.
func Create(object client.Object) Write { return Write{verb: verbCreate, object: object} }

// CreateFilled is Create of an object that fill completes when it is made, and only then:
// with a secret that is made up.
func CreateFilled(object client.Object, fill func(client.Object) error) Write {
	return Write{verb: verbCreate, object: object, fill: fill}
}

// Change turns what was seen into what it should be, status aside; it fails if it
// changed in between.
func Change(seen, desired client.Object) Write {
	return Write{verb: verbChange, base: seen, object: desired}
}

// DespiteStatus returns the Change as one that is done though the status was changed in between: nothing that may come to
// stand there makes it wrong. It saves another try where a controller writes the status of each new object.
func (w Write) DespiteStatus() Write {
	w.despiteStatus = true
	return w
}

// ChangeStatus is Change for the status.
func ChangeStatus(seen, desired client.Object) Write {
	return Write{verb: verbChangeStatus, base: seen, object: desired}
}

// Apply has the object be as it is given, whether it is there or not, but for fields that
// others have added: by server-side apply, as the manager of fields, which takes those
// that others have set otherwise, or by its creation where it has a controller and is not
// there. An object that another controller has is refused. What was applied may not be seen
// at once.
func Apply(object client.Object, manager string) Write {
	return Write{verb: verbApply, object: object, manager: manager}
}

// Delete removes the object that was seen, and no later one of its name. One that
// is gone or going is as good.
func Delete(seen client.Object, propagation metav1.DeletionPropagation) Write {
	return Write{verb: verbDelete, object: seen, propagation: propagation}
}

// Remove deletes the object of the name, which nobody here has seen, if there is one and
// the job controls it. One that is another's is left alone.
func Remove(object client.Object) Write { return Write{verb: verbRemove, object: object} }

// RemoveAll is Remove for all objects of the kind in the namespace that the job controls,
// whatever their names. The object says no more than its kind and namespace.
func RemoveAll(object client.Object) Write { return Write{verb: verbRemoveAll, object: object} }

// OrWarn returns the write with the reason of a Warning that tells people, on the
// job, that the API server refused it.
func (w Write) OrWarn(reason string) Write {
	w.onFailure = reason
	return w
}

// OrUnsay returns the write as one that the plan's status says was done: where it fails, or is yet to be done when the status is
// written, the function changes the status back.
func (w Write) OrUnsay(unsay func(status client.Object)) Write {
	w.unsay = unsay
	return w
}

// AndTell returns the write with an event that is told, on the job, once it is done.
func (w Write) AndTell(e Event) Write {
	w.onSuccess = &e
	return w
}

// isHeardByQueue reports whether the write is of the job's Workload: by it the queue hears how the job fares.
func (w Write) isHeardByQueue() bool {
	_, is := w.object.(*kueue.Workload)
	return is
}

// Tells is the event that is told once the write is done, nil if none is.
func (w Write) Tells() *Event { return w.onSuccess }

// Verb is what the write does, in words: create, change, change status of, apply, delete, remove, remove all.
func (w Write) Verb() string { return string(w.verb) }

// Object is what the write makes, removes or, in the state that it should have,
// changes. It is not to be changed.
func (w Write) Object() client.Object { return w.object }
