package simnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// workers bounds concurrent writes. They mostly wait for the API server.
	workers = 32
	// A write that failed is tried again after firstRetry, then twice as long each time, up to lastRetry.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second

	byNode = "node"
)

// driver is the kubelet of all simulated nodes: two watches, a delaying queue, and a few workers.
type driver struct {
	client    kubernetes.Interface
	pods      cache.SharedIndexInformer
	nodes     cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	addresses *addresses
	steps     steps
	writes    writeLog
}

func newDriver(client kubernetes.Interface, logf func(string, ...any)) *driver {
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry)
	return &driver{
		client: client,
		pods: coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byNode: nodeOf},
			func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
			}),
		nodes: coreinformers.NewFilteredNodeInformer(client, 0, cache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = LabelSimulated + "=true" }),
		queue:     workqueue.NewTypedRateLimitingQueue(retries),
		addresses: newAddresses(),
		writes:    writeLog{logf: logf},
	}
}

// start returns once all nodes and pods are known, and drives them in goroutines that end with ctx.
func (d *driver) start(ctx context.Context, running *sync.WaitGroup) error {
	if err := errors.Join(d.pods.SetTransform(stripPod), d.nodes.SetTransform(stripNode)); err != nil {
		return fmt.Errorf("setting up the watches of simulated nodes: %w", err)
	}
	nodeEvents, err := d.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(node any) { d.nodeAppeared(node.(*corev1.Node)) },
		UpdateFunc: func(old, node any) { d.nodeChanged(old.(*corev1.Node), node.(*corev1.Node)) },
	})
	if err != nil {
		return fmt.Errorf("watching simulated nodes: %w", err)
	}
	podEvents, err := d.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { d.podChanged(pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { d.podChanged(pod.(*corev1.Pod)) },
		DeleteFunc: d.podGone,
	})
	if err != nil {
		return fmt.Errorf("watching the pods of simulated nodes: %w", err)
	}

	running.Go(func() { d.nodes.RunWithContext(ctx) })
	running.Go(func() { d.pods.RunWithContext(ctx) })
	running.Go(func() {
		<-ctx.Done()
		d.queue.ShutDown()
	})
	// Workers may assign addresses only after the addresses of all existing pods are known.
	if !cache.WaitForCacheSync(ctx.Done(), nodeEvents.HasSynced, podEvents.HasSynced) {
		return fmt.Errorf("listing the pods of simulated nodes: %w", context.Cause(ctx))
	}
	for range workers {
		running.Go(func() {
			for d.work(ctx) {
			}
		})
	}
	return nil
}

func nodeOf(object any) ([]string, error) {
	return []string{object.(*corev1.Pod).Spec.NodeName}, nil
}

// nodeAppeared enqueues the pods of a node that is new, or that is back after it was lost.
func (d *driver) nodeAppeared(node *corev1.Node) {
	pods, err := d.pods.GetIndexer().ByIndex(byNode, node.Name)
	if err != nil {
		return // only for an index that does not exist
	}
	for _, pod := range pods {
		d.podChanged(pod.(*corev1.Pod))
	}
}

func (d *driver) nodeChanged(old, node *corev1.Node) {
	if lost(old) && !lost(node) {
		d.nodeAppeared(node)
	}
}

// podChanged records the address of a pod and enqueues the pod, unless its node is not simulated. A pod may be observed
// before its node: then nodeAppeared enqueues it.
func (d *driver) podChanged(pod *corev1.Pod) {
	if d.machine(pod) == nil {
		return
	}
	if ended(pod) {
		d.forget(pod.UID)
		if pod.DeletionTimestamp == nil {
			return
		}
	} else {
		d.addresses.keep(pod.UID, pod.Status.PodIP)
	}
	d.queue.Add(keyOf(pod))
}

func (d *driver) podGone(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		d.forget(pod.UID)
	}
}

func (d *driver) forget(pod types.UID) {
	d.addresses.release(pod)
	d.steps.forget(pod)
}

// machine returns the simulated node of the pod; nil if its node is not simulated, or is lost.
func (d *driver) machine(pod *corev1.Pod) *corev1.Node {
	object, found, err := d.nodes.GetStore().GetByKey(pod.Spec.NodeName)
	if err != nil || !found || lost(object.(*corev1.Node)) {
		return nil
	}
	return object.(*corev1.Node)
}

// work handles one pod; false means that the queue is shut down.
func (d *driver) work(ctx context.Context) bool {
	key, shutdown := d.queue.Get()
	if shutdown {
		return false
	}
	defer d.queue.Done(key)
	if err := d.sync(ctx, key); err != nil && ctx.Err() == nil {
		d.writes.failed(key, err)
		d.queue.AddRateLimited(key)
		return true
	}
	d.queue.Forget(key)
	return true
}

// sync executes what decide returns for the pod.
func (d *driver) sync(ctx context.Context, key types.NamespacedName) error {
	object, found, err := d.pods.GetStore().GetByKey(key.String())
	if err != nil || !found {
		return err
	}
	pod := object.(*corev1.Pod)
	node := d.machine(pod)
	if node == nil {
		return nil
	}
	at, err := d.placeOf(pod, node)
	if err != nil {
		return err
	}
	now := time.Now()
	decision := decide(pod, at, now)
	switch decision.action {
	case writeStatus:
		err = d.write(ctx, pod, decision)
	case remove:
		err = d.remove(ctx, pod)
	}
	if err != nil {
		return err
	}
	if !decision.due.IsZero() {
		d.queue.AddAfter(key, decision.due.Sub(now))
	}
	return nil
}

// placeOf returns what is known of the pod on its machine: the addresses of both, and when this process last moved the
// pod on. It assigns the pod an address if it will need one.
func (d *driver) placeOf(pod *corev1.Pod, node *corev1.Node) (place, error) {
	at := place{stepped: d.steps.of(pod.UID)}
	if len(node.Status.Addresses) > 0 {
		at.hostIP = node.Status.Addresses[0].Address
	}
	if pod.Status.PodIP == "" && !pod.Spec.HostNetwork && !ended(pod) {
		address, err := d.addresses.assign(pod.UID)
		if err != nil {
			return at, err
		}
		at.podIP = address.String()
	}
	return at, nil
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// steps remembers, for live pods, the exact time of their last step in this process. The zero value is empty. Safe for
// concurrent use.
type steps struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func (s *steps) of(pod types.UID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[pod]
}

func (s *steps) record(pod types.UID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[types.UID]time.Time{}
	}
	s.at[pod] = at
}

func (s *steps) forget(pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, pod)
}
