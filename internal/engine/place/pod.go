package place

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// pod is a Pod in the form in which it is charged.
type pod struct {
	key   order.Key
	node  *node
	takes vector
	// others are the amounts of resources that no node has.
	others map[string]int64
	ports  []HostPort
	// exclusive is the label that the pod names, and counted the one by which it is charged: see exclusiveBy.
	exclusive, counted string
	workload           order.Key
	podSet             string
	part               Part
	// rank is the rank within the part, negative if the pod has none.
	rank     int32
	resident bool
	// terminating: see Pod.Terminating.
	terminating bool
}

// podTable holds the pods that are present, and the pods that have succeeded.
type podTable struct {
	byKey      map[order.Key]*pod
	ofWorkload map[order.Key]*workloadPods
	// ended holds the pods that have succeeded and are not deleted yet, endedOf their number by pod set.
	ended   map[order.Key]PodSetKey
	endedOf map[PodSetKey]int32
}

func newPodTable() *podTable {
	return &podTable{byKey: map[order.Key]*pod{}, ofWorkload: map[order.Key]*workloadPods{},
		ended: map[order.Key]PodSetKey{}, endedOf: map[PodSetKey]int32{}}
}

// workloadPods holds the pods of one workload, on all nodes.
type workloadPods struct {
	pods map[order.Key]*pod
	// present counts the pods of a pod set by node.
	present map[podSetOnNode]int32
	// terminating counts the terminating pods among present; live counts, by pod set, the pods that are
	// not terminating and are on a node that is up.
	terminating map[podSetOnNode]int32
	live        map[string]int32
}

// podSetOnNode names a pod set and a node, by the node's metadata.name.
type podSetOnNode struct{ podSet, node string }

// PodSetKey identifies a pod set of a workload.
type PodSetKey struct {
	Workload order.Key
	PodSet   string
}

func (p *pod) equal(other *pod) bool {
	return p.node == other.node && p.workload == other.workload && p.podSet == other.podSet && p.part == other.part &&
		p.rank == other.rank && p.exclusive == other.exclusive &&
		p.resident == other.resident && p.terminating == other.terminating && slices.Equal(p.takes, other.takes) &&
		maps.Equal(p.others, other.others) && slices.Equal(p.ports, other.ports)
}

// count adds a pod to the counts of its workload, or removes it if times is -1.
func (pt *podTable) count(p *pod, times int32) {
	if p.workload == (order.Key{}) {
		return
	}
	c := pt.ofWorkload[p.workload]
	if c == nil {
		c = &workloadPods{pods: map[order.Key]*pod{}, present: map[podSetOnNode]int32{},
			terminating: map[podSetOnNode]int32{}, live: map[string]int32{}}
		pt.ofWorkload[p.workload] = c
	}
	at := podSetOnNode{p.podSet, p.node.Name}
	countIn(c.present, at, times)
	if p.terminating {
		countIn(c.terminating, at, times)
	} else if p.node.up() {
		countIn(c.live, p.podSet, times)
	}
	if times > 0 {
		c.pods[p.key] = p
	} else {
		delete(c.pods, p.key)
	}
	if len(c.pods) == 0 && len(c.present) == 0 {
		delete(pt.ofWorkload, p.workload)
	}
}

// countIn adds to a count, and deletes counts that become zero.
func countIn[K comparable](counts map[K]int32, of K, times int32) {
	if counts[of] += times; counts[of] == 0 {
		delete(counts, of)
	}
}

// onHost returns the number of pods of a pod set on the nodes of a host. Pods whose node no longer exists
// are not counted.
func (w *workloadPods) onHost(podSet string, h *host) int32 {
	if w == nil {
		return 0
	}
	var count int32
	for _, n := range h.nodes {
		count += w.present[podSetOnNode{podSet, n.Name}]
	}
	return count
}

// add adds a pod.
func (pt *podTable) add(p *pod) {
	pt.byKey[p.key] = p
	if p.node.pods == nil {
		p.node.pods = map[order.Key]*pod{}
	}
	p.node.pods[p.key] = p
	pt.count(p, 1)
}

// remove removes a pod.
func (pt *podTable) remove(p *pod) {
	delete(pt.byKey, p.key)
	delete(p.node.pods, p.key)
	pt.count(p, -1)
}

// end records that a pod has succeeded.
func (pt *podTable) end(key order.Key, of PodSetKey) {
	pt.ended[key] = of
	pt.endedOf[of]++
}

// forgetEnded undoes end. It returns the pod set of the pod; ended is false if the pod had not succeeded.
func (pt *podTable) forgetEnded(key order.Key) (of PodSetKey, ended bool) {
	if of, ended = pt.ended[key]; ended {
		delete(pt.ended, key)
		countIn(pt.endedOf, of, -1)
	}
	return of, ended
}

// changeUp applies a change to the node and updates the counts of live pods. It reports whether up
// changed: then the caller must call unpinnedChangedOn once places have been moved to their nodes.
func (pt *podTable) changeUp(n *node, change func()) (changed bool) {
	before := n.up()
	change()
	if n.up() == before {
		return false
	}
	times := int32(1)
	if before {
		times = -1
	}
	for _, p := range n.pods {
		if c := pt.ofWorkload[p.workload]; c != nil && !p.terminating {
			countIn(c.live, p.podSet, times)
		}
	}
	return true
}
