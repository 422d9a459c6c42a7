package demo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// fieldManager is the field manager of the objects that the demo applies.
	fieldManager = "muster-demo"
	// namespaceOfDocuments is used for manifests without a namespace, as in the documentation.
	namespaceOfDocuments = "docs"
	// kindAppearsWithin bounds the wait for a kind to be served after its CRD was applied.
	kindAppearsWithin = 30 * time.Second
)

// applier applies objects as `kubectl apply --server-side` does.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &applier{client: client,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, nil
}

// apply sends one object and returns the object as the API server stored it.
func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := a.mappingOf(ctx, object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(namespaceOfDocuments)
		}
		resource = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	return resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
}

// mappingOf returns the resource of a kind. It retries discovery, since a kind is served only some time after its CRD
// was applied.
func (a *applier) mappingOf(ctx context.Context, kind schema.GroupVersionKind) (mapping *meta.RESTMapping, err error) {
	polled := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, kindAppearsWithin,
		true, func(context.Context) (bool, error) {
			mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if meta.IsNoMatchError(err) {
				a.mapper.Reset()
				return false, nil
			}
			return true, err
		})
	if err != nil {
		return nil, err
	}
	return mapping, polled
}
