package admission

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// bindPatience is for how long kube-scheduler may say of a pod that its place does not take it before it is believed: it
// may not have heard yet of what was on that node a moment ago.
const bindPatience = 500 * time.Millisecond

// retryPatience is the same where one of its own made room for it: kube-scheduler tries whom it has refused again after ten
// seconds at most.
const retryPatience = 10*time.Second + bindPatience

// podWatch puts Pods into the engine's words. It remembers those that kube-scheduler finds no room for where they were
// given a place. One goroutine uses it.
type podWatch struct {
	refused map[engine.Key]refusedPod
}

// refusedPod is a pod whose place does not take it, which is believed from a time on.
type refusedPod struct {
	of     place.Crew
	nodes  []string
	why    string
	tellAt time.Time
	// behind tells that it had to wait for one of its own, which is on its way out.
	behind bool
}

func newPodWatch() *podWatch {
	return &podWatch{refused: map[engine.Key]refusedPod{}}
}

// set gives the events for a Pod as it is now.
func (w *podWatch) set(pod *corev1.Pod, now time.Time) []engine.Event {
	key := keyOf(pod)
	delete(w.refused, key)
	switch nodes := noRoomAt(pod); {
	case takesRoom(pod):
		return []engine.Event{engine.PodBound{Pod: podOf(pod)}}
	case hasEnded(pod):
		return []engine.Event{endOf(pod)}
	case len(nodes) > 0:
		workload, podSet := workloadOf(pod)
		_, why := refusalOf(pod)
		w.refused[key] = refusedPod{of: place.Crew{Workload: workload, PodSet: podSet}, nodes: nodes, why: againstNodes(why), tellAt: now.Add(bindPatience)}
	}
	// It is on no node. One of the same name may have been, of which only this one tells that it is gone.
	return []engine.Event{engine.PodGone{Key: key}}
}

// endOf is the event for a Pod that has ended: nobody is to come for one of a workload that has ended well.
func endOf(pod *corev1.Pod) engine.Event {
	workload, podSet := workloadOf(pod)
	if pod.Status.Phase != corev1.PodSucceeded || workload == (engine.Key{}) {
		return engine.PodGone{Key: keyOf(pod)}
	}
	return engine.PodEnded{Key: keyOf(pod), Of: place.Crew{Workload: workload, PodSet: podSet}}
}

// delete gives the events for a Pod that is gone.
func (w *podWatch) delete(pod *corev1.Pod) []engine.Event {
	delete(w.refused, keyOf(pod))
	if pod.Spec.NodeName == "" {
		return nil
	}
	return []engine.Event{engine.PodGone{Key: keyOf(pod)}}
}

// due is when something is to be told next, zero if nothing is.
func (w *podWatch) due() time.Time {
	var next time.Time
	for _, pod := range w.refused {
		if next.IsZero() || pod.tellAt.Before(next) {
			next = pod.tellAt
		}
	}
	return next
}

// tell gives the events for the pods of which it is to be believed by now that their places do not take them. filled reports whether
// all places of a pod set on a node have a pod of it: who comes for one of these that is on its way out waits for it, and no place is
// the worse for that.
func (w *podWatch) tell(now time.Time, filled func(of place.Crew, node string) bool) []engine.Event {
	var out []engine.Event
	for _, key := range slices.SortedFunc(maps.Keys(w.refused), order.CompareKeys) {
		pod := w.refused[key]
		if now.Before(pod.tellAt) {
			continue
		}
		free := slices.DeleteFunc(slices.Clone(pod.nodes), func(node string) bool { return filled(pod.of, node) })
		switch {
		case len(free) == 0:
			pod.behind, pod.tellAt = true, now.Add(bindPatience)
			w.refused[key] = pod
			continue
		case pod.behind:
			pod.behind, pod.tellAt = false, now.Add(retryPatience)
			w.refused[key] = pod
			continue
		}
		delete(w.refused, key)
		lostRacesTotal.Inc()
		for _, node := range free {
			out = append(out, engine.PodUnschedulable{Workload: pod.of.Workload, Node: node, Why: pod.why})
		}
	}
	return out
}
