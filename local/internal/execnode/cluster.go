package execnode

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// cluster is what the node watches of the cluster: its own pods, and the objects that DNS names resolve to.
type cluster struct {
	pods     cache.SharedIndexInformer
	services corelisters.ServiceLister
	slices   cache.Indexer
	// names signals that names may resolve differently.
	names changes
}

const (
	byService  = "service"
	byHostname = "hostname"
)

// watchCluster starts to watch, and returns when the caches have synced. It watches until the context ends.
func watchCluster(ctx context.Context, client kubernetes.Interface, node string) (*cluster, error) {
	all := informers.NewSharedInformerFactory(client, 0)
	own := informers.NewSharedInformerFactoryWithOptions(client,
		0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}))
	services, endpoints := all.Core().V1().Services(), all.Discovery().V1().EndpointSlices()
	c := &cluster{
		pods: own.Core().V1().Pods().Informer(), services: services.Lister(), names: changes{next: make(chan struct{})},
	}
	if err := endpoints.Informer().AddIndexers(cache.Indexers{byService: serviceOfSlice}); err != nil {
		return nil, err
	}
	if err := c.pods.AddIndexers(cache.Indexers{byHostname: hostnameOfPod}); err != nil {
		return nil, err
	}
	for _, informer := range []cache.SharedIndexInformer{c.pods, services.Informer(), endpoints.Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.names.notify() }, UpdateFunc: func(any, any) { c.names.notify() },
			DeleteFunc: func(any) { c.names.notify() },
		})
		if err != nil {
			return nil, err
		}
	}
	c.slices = endpoints.Informer().GetIndexer()
	synced := []cache.InformerSynced{c.pods.HasSynced, services.Informer().HasSynced, endpoints.Informer().HasSynced}
	all.Start(ctx.Done())
	own.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.New("stopped before the pods were listed from the API server")
	}
	return c, nil
}

func serviceOfSlice(object any) ([]string, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]}, nil
}

func hostnameOfPod(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.Subdomain == "" {
		return nil, nil
	}
	return []string{pod.Namespace + "/" + pod.Spec.Subdomain + "/" + pod.Spec.Hostname}, nil
}

// changes is a channel that is closed, and replaced, at each change.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

func (c *changes) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

func (c *changes) channel() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// Changed implements clusterdns.Source.
func (c *cluster) Changed() <-chan struct{} { return c.names.channel() }

// Expects implements clusterdns.Source: a pod of that name is bound to this node and has not ended, so it will soon
// have an address.
func (c *cluster) Expects(namespace, service, hostname string) bool {
	if c.Service(namespace, service) == nil {
		return false
	}
	pods, err := c.pods.GetIndexer().ByIndex(byHostname, namespace+"/"+service+"/"+hostname)
	return err == nil && slices.ContainsFunc(pods, func(object any) bool {
		phase := object.(*corev1.Pod).Status.Phase
		return phase != corev1.PodSucceeded && phase != corev1.PodFailed
	})
}

// Service implements clusterdns.Source.
func (c *cluster) Service(namespace, name string) *corev1.Service {
	service, err := c.services.Services(namespace).Get(name)
	if err != nil {
		return nil // the only possible error is NotFound
	}
	return service
}

// Slices implements clusterdns.Source.
func (c *cluster) Slices(namespace, service string) []*discoveryv1.EndpointSlice {
	objects, err := c.slices.ByIndex(byService, namespace+"/"+service)
	if err != nil {
		return nil // the index exists
	}
	list := make([]*discoveryv1.EndpointSlice, 0, len(objects))
	for _, object := range objects {
		list = append(list, object.(*discoveryv1.EndpointSlice))
	}
	return list
}

// allServices lists the services of all namespaces.
func (c *cluster) allServices() []*corev1.Service {
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return nil // a cache does not fail
	}
	return services
}
