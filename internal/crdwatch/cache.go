package crdwatch

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewCache makes a cache as cache.New does, but for how it reads the watches of custom resources. It is for the NewCache of a manager's
// options. It fails if the options select by labels or fields among custom resources, or name more than one namespace for them.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	namespace, err := namespaceOf(options)
	if err != nil {
		return nil, err
	}
	custom := watches{config: config, options: options, namespace: namespace}
	options.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(custom.of(object, lw), object, resync, indexers)
	}
	return cache.New(config, options)
}

// namespaceOf is the one namespace to which the options restrict what lies in namespaces, or none.
func namespaceOf(options cache.Options) (string, error) {
	if options.DefaultLabelSelector != nil || options.DefaultFieldSelector != nil || len(options.DefaultNamespaces) > 1 {
		return "", fmt.Errorf("a cache that selects by labels, by fields or more than one namespace cannot read custom resources by itself")
	}
	for object, by := range options.ByObject {
		kind, err := apiutil.GVKForObject(object, options.Scheme)
		if err != nil {
			return "", err
		}
		if isCustom(kind) && (by.Label != nil || by.Field != nil || by.Namespaces != nil) {
			return "", fmt.Errorf("a cache cannot keep a part of the custom resource %s", kind.Kind)
		}
	}
	for namespace := range options.DefaultNamespaces {
		return namespace, nil
	}
	return metav1.NamespaceAll, nil
}

// isCustom reports whether the kind is none of Kubernetes' own.
func isCustom(kind schema.GroupVersionKind) bool {
	return !clientgoscheme.Scheme.Recognizes(kind)
}

// watches makes the watches of the kinds of a cache.
type watches struct {
	config    *rest.Config
	options   cache.Options
	namespace string
}

// of gives how the kind of the object is listed and watched: as lw does, but that custom resources are watched by decoders of this package.
func (w watches) of(object runtime.Object, lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	switch object.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return lw
	}
	kind, err := apiutil.GVKForObject(object, w.options.Scheme)
	if err != nil || !isCustom(kind) {
		return lw
	}
	// Both have been done for lw by now: what fails fails there, and says so.
	mapping, err := w.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return lw
	}
	reader, err := w.clientOf(kind)
	if err != nil {
		return lw
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	return &toolscache.ListWatch{
		ListWithContextFunc: toolscache.ToListerWithContext(lw).ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			return reader.Get().NamespaceIfScoped(w.namespace, namespaced && w.namespace != metav1.NamespaceAll).
				Resource(mapping.Resource.Resource).
				SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion).
				Watch(ctx)
		},
	}
}

// clientOf is a client that decodes the kind by decoders of this package.
func (w watches) clientOf(kind schema.GroupVersionKind) (rest.Interface, error) {
	config := rest.CopyConfig(w.config)
	config.APIPath = "/apis"
	config.GroupVersion = new(kind.GroupVersion())
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = codec{
		NegotiatedSerializer: serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(w.options.Scheme)},
		scheme:               w.options.Scheme,
		kind:                 kind,
	}
	return rest.RESTClientForConfigAndClient(config, w.options.HTTPClient)
}
