package jobs

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// apply has the object be there as it is given. One that is the job's own is created if it is not there, and only applied where it
// is: most objects are made once and never again, and to create one takes the API server less than to apply it. One that outlives the
// job, and is nobody's, may be there already: of what somebody else has said of it nothing is changed.
//
// Nobody waits until the cache has seen it: then every kind that is ever applied would be kept there, for the whole cluster.
func (x *Executor) apply(ctx context.Context, job client.Object, w Write) error {
	object, err := x.saidBy(w.object)
	if err != nil {
		return err
	}
	if metav1.GetControllerOf(object) != nil {
		err := x.client.Create(ctx, object.DeepCopy(), client.FieldOwner(w.manager), client.DisableReadYourWritesConsistency)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := x.takeOver(ctx, job, object, w.manager); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	options := []client.ApplyOption{client.FieldOwner(w.manager), client.DisableReadYourWritesConsistency}
	if metav1.GetControllerOf(object) != nil {
		options = append(options, client.ForceOwnership)
	}
	return x.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
}

// saidBy is what the object says, and no more: what a client with Go types would add of itself is none of the manager's.
func (x *Executor) saidBy(object client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	gvk, err := apiutil.GVKForObject(object, x.client.Scheme())
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	said := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	unstructured.RemoveNestedField(said.Object, "metadata", "creationTimestamp")
	said.SetGroupVersionKind(gvk)
	return said, nil
}

// takeOver refuses an object that is there already and is another's: one manager of fields that applies for many jobs would take
// the reference to its owner away from another job unseen. Of one that the manager has created, it makes the fields be as if
// they had been applied: those that it does not say any more would stay otherwise.
func (x *Executor) takeOver(ctx context.Context, job client.Object, wanted *unstructured.Unstructured, manager string) error {
	found, err := x.ours(ctx, job, wanted)
	if err != nil {
		return err
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(found, sets.New(manager), manager)
	if err != nil || len(patch) == 0 {
		return err
	}
	return x.client.Patch(ctx, found, client.RawPatch(types.JSONPatchType, patch), client.DisableReadYourWritesConsistency)
}

// ours is the object that is there under the name of a wanted one, if an earlier try has made it. One that somebody else has put
// in the way is refused.
func (x *Executor) ours(ctx context.Context, job, wanted client.Object) (client.Object, error) {
	gvk, err := apiutil.GVKForObject(wanted, x.client.Scheme())
	if err != nil {
		return nil, err
	}
	found, options := wanted.DeepCopyObject().(client.Object), []client.GetOption(nil)
	if unread(wanted) {
		// Objects without Go types are read of the API server itself.
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(gvk)
		found, options = live, append(options, client.DisableReadYourWritesConsistency)
	}
	if err := x.client.Get(ctx, client.ObjectKeyFromObject(wanted), found, options...); err != nil {
		return nil, err
	}
	owner, has := metav1.GetControllerOf(wanted), metav1.GetControllerOf(found)
	switch {
	case owner == nil || metav1.IsControlledBy(found, job):
		return found, nil
	case has != nil && has.Kind == owner.Kind && has.APIVersion == owner.APIVersion && has.Name == owner.Name:
		return nil, &predecessorError{name: wanted.GetName()}
	}
	return nil, &nameTakenError{kind: gvk.Kind, name: wanted.GetName()}
}
