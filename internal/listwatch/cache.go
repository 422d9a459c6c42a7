package listwatch

import (
	"context"
	"fmt"
	"io"
	"slices"
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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewCache makes caches as cache.New does, but for how they read what there is when they begin, and the watches of custom resources. Of
// the API groups named every object is read or none; of other custom resources one that its type in Go cannot hold is passed over. It is
// for the NewCache of a manager's options; other options have to name a scheme and a mapper. Making a cache fails if they select by labels or
// fields among custom resources, or name more than one namespace for them. Who is to be told of what is passed over, besides the log and a
// metric, may be nil.
func NewCache(unread Tell, wholeGroups ...string) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		namespace, err := namespaceOf(options)
		if err != nil {
			return nil, err
		}
		if options.HTTPClient == nil {
			if options.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
				return nil, fmt.Errorf("making a client for a cache: %w", err)
			}
		}
		kinds := watches{config: config, options: options, namespace: namespace, wholeGroups: wholeGroups, unread: unread}
		options.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(kinds.of(object, lw), object, resync, indexers)
		}
		return cache.New(config, options)
	}
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
	for namespace, by := range options.DefaultNamespaces {
		if by.LabelSelector != nil || by.FieldSelector != nil {
			return "", fmt.Errorf("a cache that selects by labels or by fields cannot read custom resources by itself")
		}
		return namespace, nil
	}
	return metav1.NamespaceAll, nil
}

// isCustom reports whether the kind is none of Kubernetes' own.
func isCustom(kind schema.GroupVersionKind) bool {
	return !clientgoscheme.Scheme.Recognizes(kind)
}

// ofBuiltIn is the one namespace to which the options restrict a kind of Kubernetes' own, or none. It is not whole where they keep a part
// of it by labels or fields, or more namespaces than one.
func ofBuiltIn(kind schema.GroupVersionKind, options cache.Options) (namespace string, whole bool) {
	namespaces := options.DefaultNamespaces
	whole = options.DefaultLabelSelector == nil && options.DefaultFieldSelector == nil
	for object, by := range options.ByObject {
		if known, err := apiutil.GVKForObject(object, options.Scheme); err != nil || known != kind {
			continue
		}
		whole = whole && by.Label == nil && by.Field == nil
		if by.Namespaces != nil {
			namespaces = by.Namespaces
		}
	}
	for only, selects := range namespaces {
		namespace = only
		whole = whole && len(namespaces) == 1 && selects.LabelSelector == nil && selects.FieldSelector == nil
	}
	return namespace, whole
}

// watches makes the watches of the kinds of a cache.
type watches struct {
	config      *rest.Config
	options     cache.Options
	namespace   string   // of custom resources
	wholeGroups []string // whose objects are read all or none
	unread      Tell
}

// passesOver reports whether objects of a custom resource are to be read though another of them cannot.
func (w watches) passesOver(kind schema.GroupVersionKind) bool {
	return !slices.Contains(w.wholeGroups, kind.Group)
}

// of gives how the kind of the object is listed and watched: as lw does, but that a watch that is to begin with all there is begins with
// a list that is read piece by piece, and that custom resources are watched by decoders of this package. What fails here has failed for
// lw by now, which says so.
func (w watches) of(object runtime.Object, lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	switch object.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return lw
	}
	kind, err := apiutil.GVKForObject(object, w.options.Scheme)
	if err != nil {
		return lw
	}
	o := opening{newObject: func() (runtime.Object, error) { return w.options.Scheme.New(kind) }, unread: w.unread}
	var ask requests
	if isCustom(kind) {
		o.lists = jsonLists{kind, o.newObject, w.passesOver(kind), w.unread}
		ask, err = w.requestsOfCustom(kind)
		o.watch = ask.watch
	} else {
		o.lists = protobufLists{o.newObject}
		ask, err = w.requestsOfBuiltIn(kind)
		o.watch = toolscache.ToWatcherWithContext(lw).WatchWithContext
	}
	if err != nil {
		return lw
	}
	o.list = ask.list
	return &toolscache.ListWatch{
		ListWithContextFunc: toolscache.ToListerWithContext(lw).ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if ptr.Deref(options.SendInitialEvents, false) {
				return o.open(ctx, options)
			}
			return o.resume(ctx, options)
		},
	}
}

// requests asks for what there is of a kind, everywhere or in a namespace.
type requests struct {
	client              rest.Interface
	resource, namespace string
}

func (r requests) ask(options metav1.ListOptions) *rest.Request {
	return r.client.Get().NamespaceIfScoped(r.namespace, r.namespace != metav1.NamespaceAll).Resource(r.resource).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion)
}

func (r requests) list(ctx context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	return r.ask(options).Stream(ctx)
}

func (r requests) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch, options.AllowWatchBookmarks = true, true
	return r.ask(options).Watch(ctx)
}

func (w watches) requestsOfCustom(kind schema.GroupVersionKind) (requests, error) {
	reader, err := w.clientOf(kind)
	if err != nil {
		return requests{}, err
	}
	return w.requestsOf(kind, reader, w.namespace)
}

// requestsOfBuiltIn fails where the cache keeps a part of the kind.
func (w watches) requestsOfBuiltIn(kind schema.GroupVersionKind) (requests, error) {
	namespace, whole := ofBuiltIn(kind, w.options)
	if !whole {
		return requests{}, fmt.Errorf("a cache that keeps a part of %s cannot read it by itself", kind.Kind)
	}
	reader, err := apiutil.RESTClientForGVK(kind, false, false, w.config, serializer.NewCodecFactory(w.options.Scheme), w.options.HTTPClient)
	if err != nil {
		return requests{}, err
	}
	return w.requestsOf(kind, reader, namespace)
}

func (w watches) requestsOf(kind schema.GroupVersionKind, reader rest.Interface, namespace string) (requests, error) {
	mapping, err := w.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return requests{}, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = metav1.NamespaceAll
	}
	return requests{reader, mapping.Resource.Resource, namespace}, nil
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
		passOver:             w.passesOver(kind),
	}
	return rest.RESTClientForConfigAndClient(config, w.options.HTTPClient)
}
