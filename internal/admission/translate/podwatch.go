package translate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/podspec"
)

const (
	// bindPatience is how long kube-scheduler must report a pod of a workload as unschedulable before the report is
	// believed: its view of the node may be out of date.
	bindPatience = 500 * time.Millisecond
	// retryPatience replaces bindPatience where kube-scheduler reports insufficient capacity, which the engine counts
	// as well, and where a terminating pod of the same workload still blocks the place: kube-scheduler retries an
	// unschedulable pod after ten seconds at most.
	retryPatience = 10*time.Second + bindPatience
)

// podWatch translates Pods for the engine. It remembers the pods that kube-scheduler cannot bind to the places of
// their admission. It must be used by one goroutine only.
type podWatch struct {
	refused map[engine.Key]refusedPod
	// deadlines are the times from which the refusals are believed.
	deadlines order.Queue
	// lostRaces is how many pods were believed to be refused since the last call of TakeLostRaces.
	lostRaces int
	// Filled reports whether every place of a pod set on a node has a pod. A new pod then waits for a terminating one
	// to leave, and nothing is wrong with the place.
	Filled func(of place.PodSetKey, node string) bool
}

// TakeLostRaces returns how many pods have turned out, since the last call, to have lost the capacity of their places
// between admission and binding.
func (p *podWatch) TakeLostRaces() int {
	lost := p.lostRaces
	p.lostRaces = 0
	return lost
}

// refusedPod is a pod that kube-scheduler cannot bind to its place, which is believed from believedAt on.
type refusedPod struct {
	uid        types.UID
	of         place.PodSetKey
	nodes      []string
	why        string
	believedAt time.Time
	// blocked is set if the pod had to wait for a terminating pod of its own workload.
	blocked bool
	// lost is set once the refusal was believed, so that a pod counts as a lost race only once.
	lost bool
}

func newPodWatch() *podWatch {
	return &podWatch{
		refused: map[engine.Key]refusedPod{},
		Filled:  func(place.PodSetKey, string) bool { return false },
	}
}

// set returns the events for the current state of a Pod.
func (p *podWatch) set(pod *corev1.Pod, now time.Time) []engine.Event {
	key := KeyOf(pod)
	was := p.refused[key]
	p.forget(key)
	switch nodes := unschedulableOn(pod); {
	case occupiesNode(pod):
		return []engine.Event{engine.PodBound{Pod: podOf(pod)}}
	case podspec.HasEnded(pod):
		return []engine.Event{endOf(pod)}
	case len(nodes) > 0:
		p.refuse(pod, nodes, was, now)
	}
	// The pod is on no node. An earlier pod of that name may have been, and this may be the only sign that it is
	// gone.
	return []engine.Event{engine.PodGone{Key: key}}
}

// refuse remembers a pod that cannot be bound to any node of its places. If the same pod was refused before, it keeps
// that deadline, unless the refusal is now of another kind.
func (p *podWatch) refuse(pod *corev1.Pod, nodes []string, was refusedPod, now time.Time) {
	_, message := refusalOf(pod)
	workload, podSet := workloadOf(pod)
	is := refusedPod{uid: pod.UID, of: place.PodSetKey{Workload: workload, PodSet: podSet}, nodes: nodes,
		why: nodeRefusals(message)}
	before := was.uid == is.uid && slices.Equal(was.nodes, nodes)
	is.lost = before && was.lost
	if before && !was.believedAt.IsZero() && (was.blocked || isCapacityRefusal(was.why) == isCapacityRefusal(is.why)) {
		is.believedAt, is.blocked = was.believedAt, was.blocked
	} else {
		is.believedAt, is.blocked = now.Add(bindPatience), len(p.nodesLackingPods(is)) == 0
		if is.blocked || isCapacityRefusal(is.why) {
			is.believedAt = now.Add(retryPatience)
		}
	}
	p.remember(KeyOf(pod), is)
}

func (p *podWatch) remember(key engine.Key, pod refusedPod) {
	p.refused[key] = pod
	p.deadlines.Push(order.Rank{Since: pod.believedAt, Key: key})
}

func (p *podWatch) forget(key engine.Key) {
	delete(p.refused, key)
	p.deadlines.Remove(key)
}

// nodesLackingPods returns the nodes of the pod's places where a place has no pod.
func (p *podWatch) nodesLackingPods(pod refusedPod) []string {
	return slices.DeleteFunc(slices.Clone(pod.nodes), func(node string) bool { return p.Filled(pod.of, node) })
}

// endOf returns the event for a Pod that has ended. A succeeded pod of a workload is not replaced.
func endOf(pod *corev1.Pod) engine.Event {
	workload, podSet := workloadOf(pod)
	if pod.Status.Phase != corev1.PodSucceeded || workload == (engine.Key{}) {
		return engine.PodGone{Key: KeyOf(pod)}
	}
	return engine.PodEnded{Key: KeyOf(pod), Of: place.PodSetKey{Workload: workload, PodSet: podSet}}
}

// delete returns the events for a deleted Pod.
func (p *podWatch) delete(pod *corev1.Pod) []engine.Event {
	p.forget(KeyOf(pod))
	if pod.Spec.NodeName == "" {
		return nil
	}
	return []engine.Event{engine.PodGone{Key: KeyOf(pod)}}
}

// due returns when the next refusal will be believed, zero if there is none.
func (p *podWatch) due() time.Time {
	next, _ := p.deadlines.Peek()
	return next.Since
}

// overdue returns the events for the pods whose refusals are believed at now.
func (p *podWatch) overdue(now time.Time) []engine.Event {
	var out []engine.Event
	for {
		next, ok := p.deadlines.Peek()
		if !ok || now.Before(next.Since) {
			return out
		}
		pod := p.refused[next.Key]
		p.deadlines.Pop()
		out = append(out, p.believe(next.Key, pod, now)...)
	}
}

// believe returns the events for a pod that was refused for long enough. A pod that waits for another of its
// workload, or did at the last check, gets more time: kube-scheduler may not have retried it since.
func (p *podWatch) believe(key engine.Key, pod refusedPod, now time.Time) []engine.Event {
	lacking := p.nodesLackingPods(pod)
	if behind := len(lacking) == 0; behind || pod.blocked {
		pod.blocked, pod.believedAt = behind, now.Add(retryPatience)
		p.remember(key, pod)
		return nil
	}
	if !pod.lost {
		p.lostRaces++
	}
	pod.lost, pod.believedAt = true, time.Time{}
	p.refused[key] = pod
	var out []engine.Event
	for _, node := range lacking {
		out = append(out, engine.PodUnschedulable{Workload: pod.of.Workload, Node: node, Why: pod.why})
	}
	return out
}
