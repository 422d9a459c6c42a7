package admission

import (
	"reflect"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// shareWorkload has a Workload of the cache keep what others have too, if they have it: what it asks for, what it was given, and the
// words of its conditions.
func shareWorkload(w *kueue.Workload) {
	w.Kind, w.APIVersion, w.Namespace = shareText(w.Kind), shareText(w.APIVersion), shareText(w.Namespace)
	w.Finalizers = shareFinalizers(w.Finalizers)
	for i := range w.OwnerReferences {
		o := &w.OwnerReferences[i]
		o.APIVersion, o.Kind = shareText(o.APIVersion), shareText(o.Kind)
	}
	w.Spec.QueueName, w.Spec.PriorityClassName, w.Spec.Priority = shareText(w.Spec.QueueName), shareText(w.Spec.PriorityClassName), sharePriority(w.Spec.Priority)
	for i := range w.Spec.PodSets {
		spec := &w.Spec.PodSets[i].Template.Spec
		for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
			for j := range containers {
				asks := &containers[j].Resources
				asks.Requests, asks.Limits = shareList(asks.Requests), shareList(asks.Limits)
			}
		}
	}
	w.Spec.PodSets = alikePodSets.one(w.Spec.PodSets)
	if admission := w.Status.Admission; admission != nil {
		admission.ClusterQueue = shareText(admission.ClusterQueue)
		for i := range admission.PodSetAssignments {
			given := &admission.PodSetAssignments[i]
			given.Name, given.Flavors, given.ResourceUsage = shareText(given.Name), shareFlavors(given.Flavors), shareList(given.ResourceUsage)
		}
	}
	for i := range w.Status.Conditions {
		c := &w.Status.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = shareText(c.Type), shareText(c.Status), shareText(c.Reason), shareText(c.Message)
	}
}

var alikePodSets podSetsAlike

// podSetsAlike is alike for pod sets. What tells all of them apart is too much for a key: of those of one sketch the last are known, and
// they are compared.
type podSetsAlike struct {
	mu sync.Mutex
	of map[string][]kueue.PodSet
}

// one is the pod sets, or others that are equal in all that they say.
func (a *podSetsAlike) one(podSets []kueue.PodSet) []kueue.PodSet {
	if len(podSets) == 0 {
		return podSets
	}
	sketch := sketchOf(podSets)
	a.mu.Lock()
	known := a.of[string(sketch)]
	a.mu.Unlock()
	if reflect.DeepEqual(known, podSets) {
		return known
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.of) >= mostAlike {
		a.of = map[string][]kueue.PodSet{}
	}
	a.of[string(sketch)] = podSets
	return podSets
}

// sketchOf is what most often tells pod sets apart: names, sizes, and what containers run.
func sketchOf(podSets []kueue.PodSet) []byte {
	key := make([]byte, 0, 512)
	for i := range podSets {
		ps := &podSets[i]
		key = append(strconv.AppendInt(appendText(key, string(ps.Name)), int64(ps.Count), 10), '/')
		for j := range ps.Template.Spec.Containers {
			c := &ps.Template.Spec.Containers[j]
			key = appendText(appendText(key, c.Name), c.Image)
			for _, word := range c.Command {
				key = appendText(key, word)
			}
			for _, word := range c.Args {
				key = appendText(key, word)
			}
			key = appendList(append(key, '/'), c.Resources.Requests)
		}
		key = append(key, '\n')
	}
	return key
}
