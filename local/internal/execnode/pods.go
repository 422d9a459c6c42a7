package execnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/musterhq/muster/local/internal/execnode/podvolume"
)

// runtimeObject leaves the name runtime to the container runtime.
type runtimeObject = runtime.Object

// pods has a worker for each pod of the node, and tells the kubelet's parts the lifecycle state of each pod.
type pods struct {
	node *Node

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

func newPods(n *Node) *pods { return &pods{node: n, workers: map[types.UID]*worker{}} }

// start starts a worker for every pod of the node, now and until the context ends, and removes what an earlier run left
// of pods that are gone.
func (p *pods) start(ctx context.Context) error {
	registration, err := p.node.cluster.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.update(ctx, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { p.update(ctx, object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			p.remove(object.(*corev1.Pod))
		},
	})
	if err != nil {
		return fmt.Errorf("watching the node's pods: %w", err)
	}
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return errors.New("stopped before the pods of the node were known")
	}
	if err := p.removeLeftovers(ctx); err != nil {
		return err
	}
	p.running.Go(func() { p.node.followNames(ctx) })
	return nil
}

// wait returns when all workers have ended, which they do when the context of start has.
func (p *pods) wait() { p.running.Wait() }

func (p *pods) update(ctx context.Context, pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node.kubelet.podStore.UpdatePod(pod)
	if w, ok := p.workers[pod.UID]; ok {
		w.update(pod)
		return
	}
	w := newWorker(p.node, pod)
	p.workers[pod.UID] = w
	p.running.Go(func() { w.run(ctx) })
}

func (p *pods) remove(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node.kubelet.podStore.RemovePod(pod)
	if w, ok := p.workers[pod.UID]; ok {
		w.remove()
	}
}

// forget is called by a worker at its end.
func (p *pods) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, uid)
}

// wake makes the worker of a pod reconcile it again.
func (p *pods) wake(uid types.UID) {
	if w := p.worker(uid); w != nil {
		w.wake()
	}
}

func (p *pods) worker(uid types.UID) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers[uid]
}

// volumesOf returns the volumes of a pod that were made.
func (p *pods) volumesOf(uid types.UID) map[string]podvolume.Volume {
	if w := p.worker(uid); w != nil {
		return w.madeVolumes()
	}
	return nil
}

// removeLeftovers removes what an earlier run left of pods that are gone.
func (p *pods) removeLeftovers(ctx context.Context) error {
	entries, err := os.ReadDir(p.node.podsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for pods of an earlier run: %w", err)
	}
	known := p.known()
	for _, entry := range entries {
		if uid := types.UID(entry.Name()); !known[uid] {
			if err := os.RemoveAll(p.node.podDir(uid)); err != nil {
				return fmt.Errorf("removing a pod of an earlier run: %w", err)
			}
		}
	}
	return p.node.kubelet.removeLeftovers(ctx, p.known)
}

// The kubelet's status manager and runtime manager call the following methods.

// PodCouldHaveRunningContainers keeps a pod from being reported as ended, or deleted, while a process of the pod runs.
func (p *pods) PodCouldHaveRunningContainers(pod *corev1.Pod) bool {
	w := p.worker(pod.UID)
	return w != nil && !w.isStopped()
}

// IsPodTerminationRequested reports whether the pod must terminate.
func (p *pods) IsPodTerminationRequested(uid types.UID) bool {
	w := p.worker(uid)
	return w == nil || w.isLeaving()
}

// ShouldPodContentBeRemoved reports whether the pod is gone.
func (p *pods) ShouldPodContentBeRemoved(uid types.UID) bool { return p.worker(uid) == nil }

// ShouldPodRuntimeBeRemoved reports whether nothing of the pod runs any more.
func (p *pods) ShouldPodRuntimeBeRemoved(uid types.UID) bool {
	w := p.worker(uid)
	return w == nil || w.isStopped()
}

// podLogger returns a logger for the kubelet's parts.
func podLogger(ctx context.Context, pod *corev1.Pod) klog.Logger {
	return klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(pod))
}

// known returns the UIDs of the pods that have workers.
func (p *pods) known() map[types.UID]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := make(map[types.UID]bool, len(p.workers))
	for uid := range p.workers {
		known[uid] = true
	}
	return known
}
