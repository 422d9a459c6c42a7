package admission

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

const (
	// bindPatience is for how long kube-scheduler may say of a pod that its place does not take it before it is believed: it
	// may not have heard yet of what was on that node a moment ago.
	bindPatience = 500 * time.Millisecond
	// retryPatience is the same where it says that there is no room, which is counted here as well, and where one of its own made room
	// for the pod: kube-scheduler tries whom it has refused again after ten seconds at most.
	retryPatience = 10*time.Second + bindPatience
)

// podWatch puts Pods into the engine's words. It remembers those that kube-scheduler finds no room for where they were
// given a place. One goroutine uses it.
type podWatch struct {
	refused map[engine.Key]refusedPod
	// times are when they are to be believed.
	times order.Queue
	// filled reports whether all places of a pod set on a node have a pod of it: who comes for one of these that is on its way out
	// waits for it, and no place is the worse for that.
	filled func(of place.PodSetKey, node string) bool
}

// refusedPod is a pod whose place does not take it, which is believed from a time on.
type refusedPod struct {
	uid    types.UID
	of     place.PodSetKey
	nodes  []string
	why    string
	tellAt time.Time
	// behind tells that it had to wait for one of its own, which is on its way out.
	behind bool
	// lost tells that it was believed: whatever is said of it later, it lost its place once.
	lost bool
}

func newPodWatch() *podWatch {
	return &podWatch{
		refused: map[engine.Key]refusedPod{},
		filled:  func(place.PodSetKey, string) bool { return false },
	}
}

// set gives the events for a Pod as it is now.
func (w *podWatch) set(pod *corev1.Pod, now time.Time) []engine.Event {
	key := keyOf(pod)
	was := w.refused[key]
	w.forget(key)
	switch nodes := noRoomAt(pod); {
	case takesRoom(pod):
		return []engine.Event{engine.PodBound{Pod: podOf(pod)}}
	case hasEnded(pod):
		return []engine.Event{endOf(pod)}
	case len(nodes) > 0:
		w.refuse(pod, nodes, was, now)
	}
	// It is on no node. One of the same name may have been, of which only this one tells that it is gone.
	return []engine.Event{engine.PodGone{Key: key}}
}

// refuse remembers a pod that goes to none of the nodes of its places. One that was refused before is believed when it would have been then,
// whatever is said by now, but where that is of another kind.
func (w *podWatch) refuse(pod *corev1.Pod, nodes []string, was refusedPod, now time.Time) {
	_, message := refusalOf(pod)
	workload, podSet := workloadOf(pod)
	is := refusedPod{uid: pod.UID, of: place.PodSetKey{Workload: workload, PodSet: podSet}, nodes: nodes, why: againstNodes(message)}
	before := was.uid == is.uid && slices.Equal(was.nodes, nodes)
	is.lost = before && was.lost
	if before && !was.tellAt.IsZero() && (was.behind || isOfRoom(was.why) == isOfRoom(is.why)) {
		is.tellAt, is.behind = was.tellAt, was.behind
	} else {
		is.tellAt, is.behind = now.Add(bindPatience), len(w.lacking(is)) == 0
		if is.behind || isOfRoom(is.why) {
			is.tellAt = now.Add(retryPatience)
		}
	}
	w.remember(keyOf(pod), is)
}

func (w *podWatch) remember(key engine.Key, pod refusedPod) {
	w.refused[key] = pod
	w.times.Push(order.Rank{Since: pod.tellAt, Key: key})
}

func (w *podWatch) forget(key engine.Key) {
	delete(w.refused, key)
	w.times.Remove(key)
}

// lacking are the nodes of a pod's places that lack a pod.
func (w *podWatch) lacking(pod refusedPod) []string {
	return slices.DeleteFunc(slices.Clone(pod.nodes), func(node string) bool { return w.filled(pod.of, node) })
}

// endOf is the event for a Pod that has ended: nobody is to come for one of a workload that has ended well.
func endOf(pod *corev1.Pod) engine.Event {
	workload, podSet := workloadOf(pod)
	if pod.Status.Phase != corev1.PodSucceeded || workload == (engine.Key{}) {
		return engine.PodGone{Key: keyOf(pod)}
	}
	return engine.PodEnded{Key: keyOf(pod), Of: place.PodSetKey{Workload: workload, PodSet: podSet}}
}

// delete gives the events for a Pod that is gone.
func (w *podWatch) delete(pod *corev1.Pod) []engine.Event {
	w.forget(keyOf(pod))
	if pod.Spec.NodeName == "" {
		return nil
	}
	return []engine.Event{engine.PodGone{Key: keyOf(pod)}}
}

// due is when something is to be told next, zero if nothing is.
func (w *podWatch) due() time.Time {
	next, _ := w.times.Peek()
	return next.Since
}

// tell gives the events for the pods of which it is to be believed by now that their places do not take them.
func (w *podWatch) tell(now time.Time) []engine.Event {
	var out []engine.Event
	for {
		next, ok := w.times.Peek()
		if !ok || now.Before(next.Since) {
			return out
		}
		pod := w.refused[next.Key]
		w.times.Pop()
		out = append(out, w.believe(next.Key, pod, now)...)
	}
}

// believe gives the events for a pod that is refused for long enough, but for one that waits for its own, or did when it was last
// looked at: kube-scheduler may not have tried again since.
func (w *podWatch) believe(key engine.Key, pod refusedPod, now time.Time) []engine.Event {
	lacking := w.lacking(pod)
	if behind := len(lacking) == 0; behind || pod.behind {
		pod.behind, pod.tellAt = behind, now.Add(retryPatience)
		w.remember(key, pod)
		return nil
	}
	if !pod.lost {
		lostRacesTotal.Inc()
	}
	pod.lost, pod.tellAt = true, time.Time{}
	w.refused[key] = pod
	var out []engine.Event
	for _, node := range lacking {
		out = append(out, engine.PodUnschedulable{Workload: pod.of.Workload, Node: node, Why: pod.why})
	}
	return out
}
