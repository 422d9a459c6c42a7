package replicas

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podspec"
)

// Stay says which replicas of a group there are when it is to have so many: those whose
// pods have come furthest, and in place of missing ones the lowest free indices. So a
// group that shrinks gives up pods that still wait before pods that run, and one that
// keeps its size keeps its pods. Of those that have come as far, who sits on one of the
// given places stays before who does not: a pod whose node is gone is said to run there
// for a while.
// Pods that are going hold no replica. The indices ascend.
func Stay(job, group string, count int32, pods []*corev1.Pod, places podspec.Places) []int32 {
	type holder struct {
		index  int32
		come   int
		seated int
		pod    *corev1.Pod
	}
	var holders []holder
	for _, pod := range pods {
		if index, ok := IndexOf(job, group, pod.Name); ok && !IsGoing(pod) {
			holders = append(holders, holder{index: index, come: come(pod), pod: pod})
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Or(cmp.Compare(b.come, a.come), cmp.Compare(a.index, b.index)) })
	free := freeOf(places)
	for i := range holders {
		h := &holders[i]
		switch {
		case len(places) == 0 || h.pod.Status.Phase == corev1.PodSucceeded:
			h.seated = 1 // it needs none
		case !HasEnded(h.pod):
			if key := keyOf(h.pod, places[0]); free[key] > 0 {
				free[key]--
				h.seated = 1
			}
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.come, a.come), cmp.Compare(b.seated, a.seated), cmp.Compare(a.index, b.index))
	})
	out := make([]int32, 0, count)
	taken := make(map[int32]bool, count)
	for _, h := range holders[:min(len(holders), int(count))] {
		out, taken[h.index] = append(out, h.index), true
	}
	for index := int32(0); int32(len(out)) < count; index++ {
		if !taken[index] {
			out = append(out, index)
		}
	}
	slices.Sort(out)
	return out
}

// come is how far a pod has come: what would be lost with it.
func come(pod *corev1.Pod) int {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return 5
	case isReady(pod):
		return 4
	case pod.Status.Phase == corev1.PodRunning:
		return 3
	case pod.Status.Phase == corev1.PodFailed:
		return 0
	case pod.Spec.NodeName != "":
		return 2
	}
	return 1
}
