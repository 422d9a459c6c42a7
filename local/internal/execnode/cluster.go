package execnode

import (
	"context"
	"errors"

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

// cluster is what the node watches of the cluster: its own pods, and what names stand for.
type cluster struct {
	pods     cache.SharedIndexInformer
	services corelisters.ServiceLister
	slices   cache.Indexer
	// naming are the informers whose changes may change what names stand for.
	naming []cache.SharedIndexInformer
}

const byService = "service"

// watchCluster starts to watch, and returns when the first lists are there. It watches until the context ends.
func watchCluster(ctx context.Context, client kubernetes.Interface, node string) (*cluster, error) {
	all := informers.NewSharedInformerFactory(client, 0)
	own := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}))
	services, slices := all.Core().V1().Services(), all.Discovery().V1().EndpointSlices()
	c := &cluster{
		pods: own.Core().V1().Pods().Informer(), services: services.Lister(),
		naming: []cache.SharedIndexInformer{services.Informer(), slices.Informer()},
	}
	if err := slices.Informer().AddIndexers(cache.Indexers{byService: serviceOfSlice}); err != nil {
		return nil, err
	}
	c.slices = slices.Informer().GetIndexer()
	synced := []cache.InformerSynced{c.pods.HasSynced, services.Informer().HasSynced, slices.Informer().HasSynced}
	all.Start(ctx.Done())
	own.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.New("stopped before the API server had told which pods there are")
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

// Service implements clusterdns.Source.
func (c *cluster) Service(namespace, name string) *corev1.Service {
	service, err := c.services.Services(namespace).Get(name)
	if err != nil {
		return nil // the lister knows no other error than that there is none
	}
	return service
}

// Slices implements clusterdns.Source.
func (c *cluster) Slices(namespace, service string) []*discoveryv1.EndpointSlice {
	objects, err := c.slices.ByIndex(byService, namespace+"/"+service)
	if err != nil {
		return nil // the index exists
	}
	slices := make([]*discoveryv1.EndpointSlice, 0, len(objects))
	for _, object := range objects {
		slices = append(slices, object.(*discoveryv1.EndpointSlice))
	}
	return slices
}

// allServices lists the services of all namespaces.
func (c *cluster) allServices() []*corev1.Service {
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return nil // a cache does not fail
	}
	return services
}
