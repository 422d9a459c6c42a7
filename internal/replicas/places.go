package replicas

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// AssignPlaces returns the places of the group's missing replicas, by index. Each gets its own place by rank if that is
// free, else any free one of its slice. A repair changes places, not pods: a pod on a place that remains stays there
// whatever its rank, and missing replicas get the free places. A replica without a place must wait at its scheduling
// gate: its place is still held by a terminating pod or by one of another slice, or gated pods are waiting already.
// slice is the size of the parts, by rank, that must each be in one domain; 0 if there are none.
func (r *Roster) AssignPlaces(group string, places podspec.Places, slice int32) map[int32]podspec.Places {
	if len(places) == 0 {
		return nil
	}
	span := r.groups[group]
	free, gated := capacities(places), false
	occupy := func(pod *corev1.Pod) {
		if pod == nil || IsFinished(pod) {
			return
		}
		gated = gated || isGated(pod) && !IsTerminating(pod)
		free[keyOf(pod, places[0])]--
	}
	var missing []int32
	for i := span.from; i < span.from+span.count; i++ {
		replica := &r.Replicas[i]
		occupy(replica.Pod)
		if replica.Pod == nil && !replica.Phase.Finished() {
			missing = append(missing, replica.Index)
		}
	}
	for _, pod := range r.Surplus {
		if pod.Labels[kueue.PodSetLabel] == group {
			occupy(pod)
		}
	}
	if gated {
		return nil // gated pods were created first and get their places first
	}
	return assign(missing, places, free, slice)
}

// assign gives each replica, by ascending index, a free place: its own by rank, or else any other of its slice.
func assign(missing []int32, places podspec.Places, free map[string]int32, slice int32) map[int32]podspec.Places {
	out := map[int32]podspec.Places{}
	take := func(index int32, place podspec.Place) bool {
		key := place.Key()
		if free[key] <= 0 {
			return false
		}
		free[key]--
		out[index] = podspec.Places{{Domain: place.Domain, Count: 1}}
		return true
	}
	left, ranking := places, places.Ranking()
	var others []int32
	for _, index := range missing {
		if own := ranking.Ranks(index, index+1); len(own) == 0 || !take(index, own[0]) {
			others = append(others, index)
		}
	}
	for n, index := range others {
		if slice > 0 && (n == 0 || index/slice != others[n-1]/slice) {
			left = ranking.Ranks(index/slice*slice, index/slice*slice+slice)
		}
		for len(left) > 0 && !take(index, left[0]) {
			left = left[1:] // a place that is full stays so
		}
	}
	return out
}

// capacities returns how many pods each place takes, by key.
func capacities(places podspec.Places) map[string]int32 {
	out := make(map[string]int32, len(places))
	for _, place := range places {
		out[place.Key()] += place.Count
	}
	return out
}

// keyOf returns the key of the place that the pod is on or was assigned, using the labels of the place given.
func keyOf(pod *corev1.Pod, like podspec.Place) string {
	labels := pod.Spec.NodeSelector
	if labels[corev1.LabelHostname] == "" && pod.Spec.NodeName != "" {
		labels = withEntry(labels, corev1.LabelHostname, pod.Spec.NodeName)
	}
	return like.KeyOf(labels)
}

func isGated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: kueue.TopologyGate})
}
