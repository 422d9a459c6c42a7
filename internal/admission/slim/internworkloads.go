package slim

import (
	"reflect"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// shareWorkload interns what a cached Workload has in common with others: its pod sets, its admission and the texts
// of its conditions.
func shareWorkload(w *kueue.Workload) {
	w.Kind, w.APIVersion, w.Namespace = shareText(w.Kind), shareText(w.APIVersion), shareText(w.Namespace)
	w.Finalizers = shareFinalizers(w.Finalizers)
	// Other annotations, which users add, may be large and unique.
	if _, noted := w.Annotations[muster.AskedAnnotation]; noted && len(w.Annotations) == 1 {
		w.Annotations = shareMap(w.Annotations)
	}
	for i := range w.OwnerReferences {
		o := &w.OwnerReferences[i]
		o.APIVersion, o.Kind = shareText(o.APIVersion), shareText(o.Kind)
	}
	w.Spec.QueueName, w.Spec.PriorityClassName, w.Spec.Priority = shareText(w.Spec.QueueName),
		shareText(w.Spec.PriorityClassName), sharePriority(w.Spec.Priority)
	w.Spec.PodSets = internedPodSets.intern(w.Spec.PodSets)
	if admission := w.Status.Admission; admission != nil {
		admission.ClusterQueue = shareText(admission.ClusterQueue)
		for i := range admission.PodSetAssignments {
			given := &admission.PodSetAssignments[i]
			given.Name, given.Flavors, given.ResourceUsage = shareText(given.Name), shareFlavors(given.Flavors),
				shareList(given.ResourceUsage)
		}
	}
	for i := range w.Status.Conditions {
		c := &w.Status.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = shareText(c.Type), shareText(c.Status), shareText(c.Reason),
			shareText(c.Message)
	}
}

var internedPodSets podSetInterner

const (
	// maxPodSetBytes bounds the serialized size of all kept pod sets together.
	maxPodSetBytes = 32 << 20
	// maxKeptPodSetBytes is the size above which pod sets are not kept: a few of them would evict all others.
	maxKeptPodSetBytes = maxPodSetBytes / 256
)

// podSetInterner interns pod sets. A key that identifies them would be too large, so it keeps the last pod sets for
// each sketch, and compares.
type podSetInterner struct {
	mu       sync.Mutex
	bySketch map[string]knownPodSets
	// bytes is the size of all kept pod sets.
	bytes int
}

type knownPodSets struct {
	podSets []kueue.PodSet
	bytes   int
}

// intern returns the pod sets, or kept ones that are deeply equal. It does not modify its argument: an informer may
// transform an object twice, and the second time others read it.
func (p *podSetInterner) intern(podSets []kueue.PodSet) []kueue.PodSet {
	if len(podSets) == 0 {
		return podSets
	}
	sketch := sketchOf(podSets)
	p.mu.Lock()
	known := p.bySketch[string(sketch)].podSets
	p.mu.Unlock()
	if reflect.DeepEqual(known, podSets) {
		return known
	}
	podSets = withSharedLists(podSets)
	if reflect.DeepEqual(known, podSets) { // only their quantities were spelled differently
		return known
	}
	p.keep(string(sketch), podSets)
	return podSets
}

// keep stores the pod sets in place of others with the same sketch.
func (p *podSetInterner) keep(sketch string, podSets []kueue.PodSet) {
	bytes := len(sketch)
	for i := range podSets {
		bytes += podSets[i].Template.Size()
	}
	if bytes > maxKeptPodSetBytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes - p.bySketch[sketch].bytes
	if p.bySketch == nil || len(p.bySketch) >= maxInterned || p.bytes > maxPodSetBytes {
		p.bySketch, p.bytes = map[string]knownPodSets{}, bytes
	}
	p.bySketch[sketch] = knownPodSets{podSets, bytes}
}

// withSharedLists returns a copy of the pod sets whose containers have interned requests and limits.
func withSharedLists(podSets []kueue.PodSet) []kueue.PodSet {
	podSets = slices.Clone(podSets)
	for i := range podSets {
		spec := &podSets[i].Template.Spec
		spec.Containers, spec.InitContainers = slices.Clone(spec.Containers), slices.Clone(spec.InitContainers)
		for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
			for j := range containers {
				asks := &containers[j].Resources
				asks.Requests, asks.Limits = shareList(asks.Requests), shareList(asks.Limits)
			}
		}
	}
	return podSets
}

// sketchOf returns a key that usually tells pod sets apart: from names, counts, and the containers' images, commands
// and requests.
func sketchOf(podSets []kueue.PodSet) []byte {
	key := make([]byte, 0, 512)
	for i := range podSets {
		ps := &podSets[i]
		key = append(strconv.AppendInt(appendText(key, string(ps.Name)), int64(ps.Count), 10), '/')
		for j := range ps.Template.Spec.Containers {
			c := &ps.Template.Spec.Containers[j]
			key = appendText(appendText(appendText(key, c.Name, c.Image), c.Command...), c.Args...)
			key = appendList(append(key, '/'), c.Resources.Requests)
		}
		key = append(key, '\n')
	}
	return key
}
