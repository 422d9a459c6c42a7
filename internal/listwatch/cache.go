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

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// NewCache returns a constructor of caches, for the NewCache of a manager's options. The cache is like one of
// cache.New, except in how it reads initial lists, and how it watches custom resources. The options must have a scheme
// and a mapper; the constructor fails if they select custom resources by labels or fields, or by more than one
// namespace.
//
// An object of a custom resource that does not fit its Go type is skipped, and reported to the log, a metric, and
// onUnreadable, which may be nil. In the API groups named by strictGroups an object that does not fit makes the whole
// list or watch fail, except for a Workload that holds no quota.
func NewCache(onUnreadable UnreadableFunc, strictGroups ...string) cache.NewCacheFunc {
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
		kinds := listWatchers{config: config, options: options, namespace: namespace, strictGroups: strictGroups,
			onUnreadable: onUnreadable}
		options.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration,
			indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(untilReached(kinds.forObject(object, lw), kindOf(object, options.Scheme)),
				object, resync, indexers)
		}
		return cache.New(config, options)
	}
}

// kindOf returns the kind of the object, for the log.
func kindOf(object runtime.Object, scheme *runtime.Scheme) string {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return kind.Kind
}

// namespaceOf returns the single namespace that the options restrict namespaced objects to, "" for all.
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

// isCustom reports whether the kind is not built into Kubernetes.
func isCustom(kind schema.GroupVersionKind) bool {
	return !clientgoscheme.Scheme.Recognizes(kind)
}

// builtInScope returns the single namespace that the options restrict a built-in kind to, "" for all. whole is false if
// they restrict it in any other way: by labels or fields, or to several namespaces.
func builtInScope(kind schema.GroupVersionKind, options cache.Options) (namespace string, whole bool) {
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

// listWatchers creates the listers and watchers of a cache's kinds.
type listWatchers struct {
	config       *rest.Config
	options      cache.Options
	namespace    string   // of namespaced custom resources
	strictGroups []string // API groups whose unreadable objects are not skipped if they may hold or give quota
	onUnreadable UnreadableFunc
}

// skipRuleOf returns which unreadable objects of a custom resource are skipped.
func (l listWatchers) skipRuleOf(kind schema.GroupVersionKind) skipRule {
	switch {
	case !slices.Contains(l.strictGroups, kind.Group):
		return skipAll
	case kind.GroupKind() == kueue.GroupVersion.WithKind("Workload").GroupKind():
		return skipWaiting
	}
	return skipNone
}

// forObject returns the lister and watcher for the kind of the object. It behaves like lw, but a watch with initial
// events starts with a list that is read object by object, and custom resources are decoded by this package. If the
// client for that cannot be made it returns lw, which runs into the same error and reports it.
func (l listWatchers) forObject(object runtime.Object, lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	switch object.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return lw
	}
	kind, err := apiutil.GVKForObject(object, l.options.Scheme)
	if err != nil {
		return lw
	}
	o := listThenWatch{newObject: func() (runtime.Object, error) { return l.options.Scheme.New(kind) },
		onUnreadable: l.onUnreadable}
	var ask requests
	if isCustom(kind) {
		o.lists = jsonLists{kind, o.newObject, l.skipRuleOf(kind), l.onUnreadable}
		ask, err = l.requestsOfCustom(kind)
		o.watch = ask.watch
	} else {
		o.lists = protobufLists{o.newObject}
		ask, err = l.requestsOfBuiltIn(kind)
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

// requests makes list and watch requests for a kind, in all namespaces or in one.
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

func (l listWatchers) requestsOfCustom(kind schema.GroupVersionKind) (requests, error) {
	reader, err := l.clientOf(kind)
	if err != nil {
		return requests{}, err
	}
	return l.requestsOf(kind, reader, l.namespace)
}

// requestsOfBuiltIn fails if the cache has only a part of the kind.
func (l listWatchers) requestsOfBuiltIn(kind schema.GroupVersionKind) (requests, error) {
	namespace, whole := builtInScope(kind, l.options)
	if !whole {
		return requests{}, fmt.Errorf("a cache that keeps a part of %s cannot read it by itself", kind.Kind)
	}
	reader, err := apiutil.RESTClientForGVK(kind, false, false, l.config, serializer.NewCodecFactory(l.options.Scheme),
		l.options.HTTPClient)
	if err != nil {
		return requests{}, err
	}
	return l.requestsOf(kind, reader, namespace)
}

func (l listWatchers) requestsOf(kind schema.GroupVersionKind, reader rest.Interface,
	namespace string) (requests, error) {
	mapping, err := l.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return requests{}, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = metav1.NamespaceAll
	}
	return requests{reader, mapping.Resource.Resource, namespace}, nil
}

// clientOf returns a client that decodes the kind with this package's decoders.
func (l listWatchers) clientOf(kind schema.GroupVersionKind) (rest.Interface, error) {
	config := rest.CopyConfig(l.config)
	config.APIPath = "/apis"
	config.GroupVersion = new(kind.GroupVersion())
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = codec{
		NegotiatedSerializer: serializer.WithoutConversionCodecFactory{
			CodecFactory: serializer.NewCodecFactory(l.options.Scheme)},
		scheme: l.options.Scheme,
		kind:   kind,
		skip:   l.skipRuleOf(kind),
	}
	return rest.RESTClientForConfigAndClient(config, l.options.HTTPClient)
}
