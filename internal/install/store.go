package install

import (
	"context"
	"fmt"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
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

// store reads and applies the objects of some kinds.
type store interface {
	list(context.Context) (map[identity]runtime.Object, error)
	apply(ctx context.Context, object identity, body []byte) error
}

// definitionStore is the store of custom resource definitions.
type definitionStore struct{ client apiextensions.Interface }

func (d definitionStore) list(ctx context.Context) (map[identity]runtime.Object, error) {
	definitions, err := d.client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make(map[identity]runtime.Object, len(definitions.Items))
	for i := range definitions.Items {
		found[identity{"CustomResourceDefinition", definitions.Items[i].Name}] = &definitions.Items[i]
	}
	return found, nil
}

func (d definitionStore) apply(ctx context.Context, object identity, body []byte) error {
	_, err := d.client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, object.name, types.ApplyPatchType,
		body, forceAsMuster)
	return err
}

// policyStore is the store of validating admission policies and their bindings.
type policyStore struct{ client kubernetes.Interface }

func (p policyStore) list(ctx context.Context) (map[identity]runtime.Object, error) {
	policies, err := p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	bindings, err := p.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make(map[identity]runtime.Object, len(policies.Items)+len(bindings.Items))
	for i := range policies.Items {
		found[identity{policyKind, policies.Items[i].Name}] = &policies.Items[i]
	}
	for i := range bindings.Items {
		found[identity{bindingKind, bindings.Items[i].Name}] = &bindings.Items[i]
	}
	return found, nil
}

func (p policyStore) apply(ctx context.Context, object identity, body []byte) error {
	var err error
	switch object.kind {
	case policyKind:
		_, err = p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Patch(ctx, object.name,
			types.ApplyPatchType, body, forceAsMuster)
	case bindingKind:
		_, err = p.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Patch(ctx, object.name,
			types.ApplyPatchType, body, forceAsMuster)
	default:
		err = fmt.Errorf("a %s is not an admission policy that validates", object.kind)
	}
	return err
}

// mutatingPolicyStore is the store of mutating admission policies and their bindings.
type mutatingPolicyStore struct{ client kubernetes.Interface }

func (m mutatingPolicyStore) list(ctx context.Context) (map[identity]runtime.Object, error) {
	policies, err := m.client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	bindings, err := m.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make(map[identity]runtime.Object, len(policies.Items)+len(bindings.Items))
	for i := range policies.Items {
		found[identity{mutatingPolicyKind, policies.Items[i].Name}] = &policies.Items[i]
	}
	for i := range bindings.Items {
		found[identity{mutatingBindingKind, bindings.Items[i].Name}] = &bindings.Items[i]
	}
	return found, nil
}

func (m mutatingPolicyStore) apply(ctx context.Context, object identity, body []byte) error {
	var err error
	switch object.kind {
	case mutatingPolicyKind:
		_, err = m.client.AdmissionregistrationV1().MutatingAdmissionPolicies().Patch(ctx, object.name, types.ApplyPatchType,
			body, forceAsMuster)
	case mutatingBindingKind:
		_, err = m.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Patch(ctx, object.name,
			types.ApplyPatchType, body, forceAsMuster)
	default:
		err = fmt.Errorf("a %s is not an admission policy that mutates", object.kind)
	}
	return err
}
