package replicas

import (
	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// Seats says which of the places of a group its missing replicas take, by index: those
// that no pod has, each its own by rank where that is free, else what is left. A repair
// moves places, not pods: whoever is on a place that is kept stays there, whatever its
// rank, and whoever is missing gets what is free. A replica without a seat has to wait
// at the gate: for a pod that is on its way out, or because others wait there already.
func (r *Roster) Seats(group string, places podspec.Places) map[int32]podspec.Places {
	if len(places) == 0 {
		return nil
	}
	span := r.groups[group]
	free, waits := freeOf(places), false
	hold := func(pod *corev1.Pod) {
		if pod == nil || HasEnded(pod) {
			return
		}
		waits = waits || isGated(pod) && !IsGoing(pod)
		free[keyOf(pod, places[0])]--
	}
	var missing []int32
	for i := span.from; i < span.from+span.count; i++ {
		replica := &r.Replicas[i]
		hold(replica.Pod)
		if replica.Pod == nil && !replica.Phase.Ended() {
			missing = append(missing, replica.Index)
		}
	}
	for _, pod := range r.Surplus {
		if pod.Labels[kueue.PodSetLabel] == group {
			hold(pod)
		}
	}
	if waits {
		return nil // who has waited longer comes first
	}
	return seat(missing, places, free)
}

// seat gives each of the replicas, by ascending index, a place that is free: its own by rank, or else one of those that are left.
func seat(missing []int32, places podspec.Places, free map[string]int32) map[int32]podspec.Places {
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
	own := cursor{places: places}
	var without []int32
	for _, index := range missing {
		if place, ok := own.of(index); !ok || !take(index, place) {
			without = append(without, index)
		}
	}
	at := 0
	for _, index := range without {
		for at < len(places) && !take(index, places[at]) {
			at++
		}
	}
	return out
}

// freeOf is how many pods each place has room for.
func freeOf(places podspec.Places) map[string]int32 {
	out := make(map[string]int32, len(places))
	for _, place := range places {
		out[place.Key()] += place.Count
	}
	return out
}

// cursor finds the places of ascending ranks.
type cursor struct {
	places podspec.Places
	next   int
	before int32
}

func (c *cursor) of(rank int32) (podspec.Place, bool) {
	for c.next < len(c.places) {
		place := c.places[c.next]
		if rank < c.before+place.Count {
			return place, true
		}
		c.before += place.Count
		c.next++
	}
	return podspec.Place{}, false
}

// keyOf is the key of the place that the pod has or was given, as places like that one
// have it.
func keyOf(pod *corev1.Pod, like podspec.Place) string {
	at := podspec.Place{Domain: make(map[string]string, len(like.Domain))}
	for label := range like.Domain {
		value := pod.Spec.NodeSelector[label]
		if value == "" && label == corev1.LabelHostname {
			value = pod.Spec.NodeName
		}
		at.Domain[label] = value
	}
	return at.Key()
}

func isGated(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.SchedulingGates {
		if gate.Name == kueue.TopologyGate {
			return true
		}
	}
	return false
}
