package write

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

	"github.com/musterhq/muster/api/muster"
)

// apply makes the object exist as given. An object with a controller is created if it does not exist, and applied only
// if it does: most objects are created once and never changed, and a create is cheaper for the API server than an
// apply. An object without a controller outlives the job and may exist already; fields that other managers have set are
// not forced. An object that names the object that it is made for is created in the same way: of two jobs that make it
// at once, the second finds the object of the first.
//
// It does not wait for the cache: that would start an informer for every kind that is ever applied, for the whole
// cluster.
func (ex *Executor) apply(ctx context.Context, job client.Object, w Write) error {
	object, err := ex.onlySetFields(w.object)
	if err != nil {
		return err
	}
	var found client.Object
	if metav1.GetControllerOf(object) != nil || madeFor(object) != "" {
		err := ex.client.Create(ctx, object.DeepCopy(), client.FieldOwner(w.manager), client.DisableReadYourWritesConsistency)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		found, err = ex.takeOver(ctx, job, object, w.manager)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && madeFor(found) == "" {
			// It is older than the annotation, or a user's, and may be in use for something else with the same name.
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", muster.MadeForAnnotation)
		}
	}
	options := []client.ApplyOption{client.FieldOwner(w.manager), client.DisableReadYourWritesConsistency}
	if metav1.GetControllerOf(object) != nil {
		options = append(options, client.ForceOwnership)
	}
	err = ex.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	if found != nil {
		err = explainClaim(found, object, err)
	}
	return err
}

// onlySetFields returns the object with only the fields that it sets: zero values that Go types would add must not be
// owned by the field manager.
func (ex *Executor) onlySetFields(object client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	gvk, err := ex.client.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	applied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	unstructured.RemoveNestedField(applied.Object, "metadata", "creationTimestamp")
	applied.SetGroupVersionKind(gvk)
	return applied, nil
}

// takeOver fails if the object exists and another job controls it: since one field manager applies for many jobs, the
// apply would silently remove the owner reference of the job in control. If this manager created the object, takeOver
// moves the fields to server-side apply; otherwise, fields that are not applied any more would stay. It returns what it
// found.
func (ex *Executor) takeOver(ctx context.Context, job client.Object, wanted *unstructured.Unstructured,
	manager string) (client.Object, error) {
	found, err := ex.existing(ctx, job, wanted)
	if err != nil {
		return nil, err
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(found, sets.New(manager), manager)
	if err != nil || len(patch) == 0 {
		return found, err
	}
	return found, ex.client.Patch(ctx, found, client.RawPatch(types.JSONPatchType, patch),
		client.DisableReadYourWritesConsistency)
}

// madeFor returns for what the object was made, "" if it does not say so.
func madeFor(object client.Object) string { return object.GetAnnotations()[muster.MadeForAnnotation] }

// existing returns the existing object with the name of wanted, if an earlier try created it. An object of another
// owner, or one that was made for something else, is an error.
func (ex *Executor) existing(ctx context.Context, job, wanted client.Object) (client.Object, error) {
	gvk, err := ex.client.GroupVersionKindFor(wanted)
	if err != nil {
		return nil, err
	}
	found, options := wanted.DeepCopyObject().(client.Object), []client.GetOption(nil)
	if isUncached(wanted) {
		// Objects that are not cached are read from the API server.
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(gvk)
		found, options = live, append(options, client.DisableReadYourWritesConsistency)
	}
	if err := ex.client.Get(ctx, client.ObjectKeyFromObject(wanted), found, options...); err != nil {
		return nil, err
	}
	owner, has := metav1.GetControllerOf(wanted), metav1.GetControllerOf(found)
	switch {
	case madeFor(found) != "" && madeFor(found) != madeFor(wanted):
		return nil, &NameTakenError{Kind: gvk.Kind, Name: wanted.GetName(), MadeFor: madeFor(found)}
	case owner == nil || metav1.IsControlledBy(found, job):
		return found, nil
	case has != nil && has.Kind == owner.Kind && has.APIVersion == owner.APIVersion && has.Name == owner.Name:
		return nil, &predecessorError{name: wanted.GetName()}
	}
	return nil, &NameTakenError{Kind: gvk.Kind, Name: wanted.GetName()}
}
