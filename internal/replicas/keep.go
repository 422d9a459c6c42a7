package replicas

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// KeepIndices returns the indices, ascending, of the replicas to keep in a group of the given size: the indices of pods
// that have progressed furthest, and then the lowest free ones. So a group that shrinks gives up waiting pods before
// running ones, and a group that keeps its size keeps its pods. Of pods with equal progress, pods on one of the places
// are kept first: a pod whose node is gone is reported as running for a while. Terminating pods hold no index.
func KeepIndices(job, group string, count int32, pods []*corev1.Pod, places podspec.Places) []int32 {
	type candidate struct {
		index    int32
		progress int
		placed   int
		pod      *corev1.Pod
	}
	var candidates []candidate
	for _, pod := range pods {
		if index, ok := IndexOf(job, group, pod.Name); ok && !IsTerminating(pod) {
			candidates = append(candidates, candidate{index: index, progress: progress(pod), pod: pod})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.progress, a.progress), cmp.Compare(a.index, b.index))
	})
	free := capacities(places)
	for h := range pointers.To(candidates) {
		switch {
		case len(places) == 0 || h.pod.Status.Phase == corev1.PodSucceeded:
			h.placed = 1 // it needs none
		case !IsFinished(h.pod):
			if key := keyOf(h.pod, places[0]); free[key] > 0 {
				free[key]--
				h.placed = 1
			}
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.progress, a.progress), cmp.Compare(b.placed, a.placed), cmp.Compare(a.index, b.index))
	})
	out := make([]int32, 0, count)
	taken := make(map[int32]bool, count)
	for _, h := range candidates[:min(len(candidates), int(count))] {
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

// progress ranks pods by how much work is lost with them.
func progress(pod *corev1.Pod) int {
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
