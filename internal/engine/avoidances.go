package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// What kube-scheduler knows of a node and place.Map does not, such as volumes or pod affinity, may change without an
// event. So a node that it refused for a pod is avoided as long as the workload has places, and for some time after
// it has lost them. One admission may take as many moves as there are refusing nodes, so that this time grows with
// their number, and with each repetition. Where a pod of the workload itself is the reason, the node is not avoided: it
// only gets fewer pods of the workload.

// longestAvoidance bounds how long a waiting workload avoids nodes.
const longestAvoidance = time.Hour

// avoidance is the nodes that kube-scheduler refused for a workload.
type avoidance struct {
	// nodes are sorted, and named as in places.
	nodes []string
	// limits are the most pods of the workload on some nodes, sorted: kube-scheduler refused more there, beside pods of the
	// workload itself.
	limits []place.NodeCount
	// why is what kube-scheduler said of the last one.
	why string
	// times counts how often they expired. timed is set while an expiry is scheduled.
	times int
	timed bool
}

// Filled reports whether each of the pod set's places on the node, named as in places, has a pod.
func (e *Engine) Filled(of place.PodSetKey, node string) bool { return e.nodes.places.Filled(of, node) }

func (p PodUnschedulable) apply(e *Engine) {
	w := e.workloads[p.Workload]
	if w == nil || w.held == nil || slices.Contains(w.avoid.nodes, p.Node) {
		return
	}
	if most := e.nodes.mostOn(w, p); most > 0 {
		w.avoid.limit(p.Node, most)
		w.placed.shape = nil
		e.nodes.updatePlaces(w)
		return
	}
	w.avoid.nodes = slices.Sorted(slices.Values(append(slices.Clone(w.avoid.nodes), p.Node)))
	w.avoid.why = p.Why
	w.placed.shape = nil
	e.nodes.updatePlaces(w)
}

// mostOn returns how many pods of the workload the node may get after kube-scheduler refused one more, 0 if the node is to
// be avoided. Where pods of the workload run, the node is good for these. Where kube-scheduler minds other pods, and the
// node was to have several of the workload, these may be the pods that it minds: the next trial is with half of them.
func (n *nodes) mostOn(w *workload, ev PodUnschedulable) int32 {
	if there := n.places.PodsOn(w.Key, ev.Node); there > 0 {
		return there
	}
	if !mindsOtherPods(ev.Why) {
		return 0
	}
	given := int32(0)
	for _, a := range w.held.Places() {
		for _, at := range a.Nodes {
			if at.Node == ev.Node {
				given += at.Count
			}
		}
	}
	return given / 2
}

// mindsOtherPods reports whether kube-scheduler refuses nodes for the sake of other pods, by labels.
func mindsOtherPods(why string) bool {
	return slices.ContainsFunc([]string{"anti-affinity rules", "pod affinity rules", "topology spread constraints"},
		func(said string) bool { return strings.Contains(why, said) })
}

// limit sets the most pods of the workload on a node.
func (a *avoidance) limit(node string, most int32) {
	a.limits = slices.DeleteFunc(slices.Clone(a.limits), func(at place.NodeCount) bool { return at.Node == node })
	a.limits = append(a.limits, place.NodeCount{Node: node, Count: most})
	slices.SortFunc(a.limits, func(a, b place.NodeCount) int { return strings.Compare(a.Node, b.Node) })
}

// any reports whether there is anything to forget.
func (a *avoidance) any() bool { return len(a.nodes)+len(a.limits) > 0 }

// key is equal for equal nodes and limits.
func (a *avoidance) key() string {
	if len(a.limits) == 0 {
		return strings.Join(a.nodes, ",")
	}
	return fmt.Sprintf("%s|%v", strings.Join(a.nodes, ","), a.limits)
}

// duration returns how long the nodes are avoided by a workload that waits.
func (a *avoidance) duration() time.Duration {
	return min(time.Duration(len(a.nodes)+len(a.limits))*retryAfter(a.times+1), longestAvoidance)
}

// avoidances has the workloads without places that avoid nodes.
type avoidances struct {
	workloads map[Key]*workload
	// untimed are those for which no expiry is scheduled yet; the others have one in timers.
	untimed sets.Set[Key]
	timers  *waiting.Timers
}

// forget forgets a workload that is gone.
func (a *avoidances) forget(key Key) {
	a.untimed.Delete(key)
	a.timers.Stop(waiting.ForgetAvoided, key)
}

// limit limits how long a workload without places avoids nodes, counted from the end of the next Decide.
func (a *avoidances) limit(w *workload) {
	if w.held == nil && w.avoid.any() && !w.avoid.timed {
		a.untimed.Insert(w.Key)
	}
}

// schedule schedules the expiry for workloads that have lost their places.
func (a *avoidances) schedule(now time.Time) {
	for key := range a.untimed {
		of := &a.workloads[key].avoid
		of.timed = true
		a.timers.Set(waiting.ForgetAvoided, key, now.Add(of.duration()))
	}
	clear(a.untimed)
}

// forgetAvoidance clears the avoided nodes of workloads whose time is over.
func (e *Engine) forgetAvoidance(now time.Time) {
	for {
		key, due := e.waiting.Take(waiting.ForgetAvoided, now)
		if !due {
			return
		}
		w := e.workloads[key]
		w.avoid.timed = false
		if w.held != nil {
			continue // the time starts again when it loses its places
		}
		w.avoid = avoidance{times: w.avoid.times + 1}
		if w.nomination == nil {
			e.route(w)
			continue
		}
		w.nomination.checkedAt = -1 // others were evicted for it: it keeps the nomination, and may use the nodes as well
		w.placed.shape = nil
		e.nodes.updatePlaces(w)
		w.queue.family.enqueue()
	}
}
