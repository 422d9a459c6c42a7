package install

import (
	"context"
	"fmt"
	"maps"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	policyKind          = "ValidatingAdmissionPolicy"
	bindingKind         = "ValidatingAdmissionPolicyBinding"
	mutatingPolicyKind  = "MutatingAdmissionPolicy"
	mutatingBindingKind = "MutatingAdmissionPolicyBinding"
)

// identity identifies an object within a store.
type identity struct{ kind, name string }

func identify(object *unstructured.Unstructured) identity {
	return identity{object.GetKind(), object.GetName()}
}

// store is where the live objects of some kinds are read and applied: their part of the API server.
type store interface {
	list(context.Context) (map[identity]runtime.Object, error)
	apply(ctx context.Context, object identity, body []byte) error
}

// kindClient is the client of one kind of objects of the type T, of which L is a list.
type kindClient[T, L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Patch(ctx context.Context, name string, kind types.PatchType, body []byte, options metav1.PatchOptions,
		subresources ...string) (T, error)
}

// kindStore is the store of one kind.
type kindStore[T, L runtime.Object] struct {
	kind   string
	client kindClient[T, L]
}

func newKindStore[T, L runtime.Object](kind string, client kindClient[T, L]) store {
	return kindStore[T, L]{kind, client}
}

func (k kindStore[T, L]) list(ctx context.Context) (map[identity]runtime.Object, error) {
	all, err := k.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[identity]runtime.Object{}
	return found, meta.EachListItem(all, func(object runtime.Object) error {
		found[identity{k.kind, object.(metav1.Object).GetName()}] = object
		return nil
	})
}

func (k kindStore[T, L]) apply(ctx context.Context, object identity, body []byte) error {
	_, err := k.client.Patch(ctx, object.name, types.ApplyPatchType, body, forceAsMuster)
	return err
}

// stores are the stores of several kinds, by kind.
type stores map[string]store

func (s stores) list(ctx context.Context) (map[identity]runtime.Object, error) {
	found := map[identity]runtime.Object{}
	for _, of := range s {
		some, err := of.list(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, some)
	}
	return found, nil
}

func (s stores) apply(ctx context.Context, object identity, body []byte) error {
	of, ok := s[object.kind]
	if !ok {
		return fmt.Errorf("a %s is not an admission policy", object.kind)
	}
	return of.apply(ctx, object, body)
}

// definitionStore returns the store of custom resource definitions.
func definitionStore(client apiextensions.Interface) store {
	return newKindStore("CustomResourceDefinition", client.ApiextensionsV1().CustomResourceDefinitions())
}

// policyStore returns the store of validating admission policies and their bindings.
func policyStore(client kubernetes.Interface) store {
	api := client.AdmissionregistrationV1()
	return stores{
		policyKind:  newKindStore(policyKind, api.ValidatingAdmissionPolicies()),
		bindingKind: newKindStore(bindingKind, api.ValidatingAdmissionPolicyBindings()),
	}
}

// mutatingPolicyStore returns the store of mutating admission policies and their bindings.
func mutatingPolicyStore(client kubernetes.Interface) store {
	api := client.AdmissionregistrationV1()
	return stores{
		mutatingPolicyKind:  newKindStore(mutatingPolicyKind, api.MutatingAdmissionPolicies()),
		mutatingBindingKind: newKindStore(mutatingBindingKind, api.MutatingAdmissionPolicyBindings()),
	}
}
