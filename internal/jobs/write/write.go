package write

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/podspec"
)

// Write is one change of the cluster. It is made by a constructor such as Create, Change, Apply or Delete.
type Write struct {
	verb        Verb
	manager     string
	object      client.Object
	base        client.Object
	propagation metav1.DeletionPropagation
	onFailure   string
	onSuccess   *Event
	fill        func(client.Object) error
	// except are the names of objects that a removal of all leaves.
	except []string
	// revert removes the record of the write from the status.
	revert func(status client.Object)
	// dispensable says that the job goes on without the write if the API server refuses it.
	dispensable bool
	// despiteStatus does a change even if the status has changed since.
	despiteStatus bool
}

// Verb is what a write does, in words.
type Verb string

const (
	VerbCreate       Verb = "create"
	VerbChange       Verb = "change"
	VerbChangeStatus Verb = "change status of"
	VerbApply        Verb = "apply"
	VerbDelete       Verb = "delete"
	VerbRemove       Verb = "remove"
	VerbRemoveAll    Verb = "remove all"
)

// Create creates the object. An existing one of the same name that the job controls counts as success.
func Create(object client.Object) Write { return Write{verb: VerbCreate, object: object} }

// CreateFilled creates the object after fill has completed it at the time of the write, for instance with a generated
// secret. An existing object of the same name that the job controls counts as success.
func CreateFilled(object client.Object, fill func(client.Object) error) Write {
	return Write{verb: VerbCreate, object: object, fill: fill}
}

// Change turns the observed object into the desired one, except for its status. It fails if the object has changed
// since.
func Change(seen, desired client.Object) Write {
	return Write{verb: VerbChange, base: seen, object: desired}
}

// DespiteStatus returns the Change as one that is done even if the status has changed since, because nothing that the
// status can say makes it wrong. It saves a retry if a controller writes the status of each new object.
func (w Write) DespiteStatus() Write {
	w.despiteStatus = true
	return w
}

// ChangeStatus changes the status of the object from what was observed to what is desired, if nobody has changed the
// object since.
func ChangeStatus(seen, desired client.Object) Write {
	return Write{verb: VerbChangeStatus, base: seen, object: desired}
}

// Apply makes the object as given, whether it exists or not; fields that other managers have added stay. It uses
// server-side apply with this field manager, or, if the object has a controller and does not exist, a create. For an
// object with a controller, fields of other managers are taken over, and an existing object with another controller is
// refused. The cache may not show the result at once.
func Apply(object client.Object, manager string) Write {
	return Write{verb: VerbApply, object: object, manager: manager}
}

// Delete deletes the observed object, but no later one of the same name. One that is gone or terminating counts as
// success.
func Delete(seen client.Object) Write {
	return Write{verb: VerbDelete, object: seen, propagation: metav1.DeletePropagationBackground}
}

// DeleteInForeground is Delete, but the object stays until all that it owns is gone.
func DeleteInForeground(seen client.Object) Write {
	return Write{verb: VerbDelete, object: seen, propagation: metav1.DeletePropagationForeground}
}

// Remove deletes the object of this name, which was not observed, if it exists and the job controls it. An object with
// another controller is left alone.
func Remove(object client.Object) Write { return Write{verb: VerbRemove, object: object} }

// RemoveAll deletes all objects that the job controls of the object's kind, in its namespace, if they exist. Objects
// with one of the names are left.
func RemoveAll(object client.Object, except ...string) Write {
	return Write{verb: VerbRemoveAll, object: object, except: except}
}

// Marked returns the Change of an object as one that also sets the annotation muster.dev/queued.
func (w Write) Marked(mark string) Write {
	if w.verb != VerbChange || w.object.GetAnnotations()[muster.QueuedAnnotation] == mark {
		return w
	}
	marked := w.object.DeepCopyObject().(client.Object)
	marked.SetAnnotations(podspec.Merged(marked.GetAnnotations(), map[string]string{muster.QueuedAnnotation: mark}))
	w.object = marked
	return w
}

// OrWarn returns the write with the reason of a Warning that is recorded on the job if the API server refuses the
// write.
func (w Write) OrWarn(reason string) Write {
	w.onFailure = reason
	return w
}

// OrGoOn returns the write as one that the job can go on without. If the API server refuses the write, a Warning with
// the reason is recorded, and the next plan sees the refusal in Seen.MustGoOn.
func (w Write) OrGoOn(reason string) Write {
	w.dispensable = true
	return w.OrWarn(reason)
}

// changeRefused is the reason of the event that the API server refuses a change of a job or its children.
const changeRefused = "ChangeRefused"

// RefusalReason returns the reason of the Warning, "" for none. A policy of the cluster may refuse any change, such as
// the start of a job or another size: nobody would know why the job stays as it is.
func (w Write) RefusalReason() string {
	if w.onFailure == "" && w.verb == VerbChange && !w.IsToWorkload() {
		return changeRefused
	}
	return w.onFailure
}

// OrRevert returns the write as one whose success the plan's status reports. If it fails, or is still to be done when
// the status is written, unsay corrects the status.
func (w Write) OrRevert(unsay func(status client.Object)) Write {
	w.revert = unsay
	return w
}

// WithEvent returns the write with the event that is recorded on the job once the write is done, if one is given.
func (w Write) WithEvent(event ...Event) Write {
	for _, e := range event {
		w.onSuccess = &e
	}
	return w
}

// IsToWorkload reports whether the write is to the job's Workload, by which its queue learns about the job.
func (w Write) IsToWorkload() bool {
	_, is := w.object.(*kueue.Workload)
	return is
}

// SuccessEvent returns the event that is recorded once the write is done, nil if there is none.
func (w Write) SuccessEvent() *Event { return w.onSuccess }

// Verb returns what the write does.
func (w Write) Verb() Verb { return w.verb }

// Seen returns the object that the write changes as it was observed, nil if the write changes none. It must not be
// modified.
func (w Write) Seen() client.Object { return w.base }

// Object returns the object that the write creates, deletes or changes, in its desired state. It must not be modified.
func (w Write) Object() client.Object { return w.object }
