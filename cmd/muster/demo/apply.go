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
	// fieldManager owns the fields that the demo applies.
	fieldManager = "muster-demo"
	// namespaceOfDocuments takes the manifests that name no namespace: the documents' own.
	namespaceOfDocuments = "docs"
	// kindAppearsWithin is how long a kind may take to be served after its definition was applied.
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
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, nil
}

// apply sends one object and gives what the API server made of it.
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

// mappingOf finds the resource of a kind. A kind whose definition has just been applied is served a moment later, and
// nothing announces it, so discovery is asked again.
func (a *applier) mappingOf(ctx context.Context, kind schema.GroupVersionKind) (mapping *meta.RESTMapping, err error) {
	polled := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, kindAppearsWithin, true, func(context.Context) (bool, error) {
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
