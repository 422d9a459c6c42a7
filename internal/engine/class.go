package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// shape is the pod sets of workloads: workloads of the same shape and priority in a queue either all fit or do not, so
// that only the first of them is evaluated.
type shape struct {
	key     string
	podSets []PodSet
	users   int
	// elastic is set if a pod set is elastic.
	elastic bool
}

// shapeKey returns a string that is equal for equal pod sets.
func shapeKey(podSets []PodSet) string {
	b := make([]byte, 0, 128)
	text := func(s string) { b = append(strconv.AppendQuote(b, s), ',') }
	number := func(n int64) { b = append(strconv.AppendInt(b, n, 10), ',') }
	for i := range podSets {
		ps := &podSets[i]
		text(ps.Name)
		number(int64(ps.Count))
		number(int64(ps.MinCount))
		number(int64(ps.Together))
		number(int64(ps.Wanted))
		number(int64(ps.Reclaimable))
		b = append(strconv.AppendFloat(b, ps.Elastic, 'g', -1, 64), ',')
		number(int64(len(ps.PerPod)))
		for _, resource := range slices.Sorted(maps.Keys(ps.PerPod)) {
			text(resource)
			number(ps.PerPod[resource])
		}
		if ps.OfNode != nil || ps.Topology != nil || len(ps.HostPorts) > 0 || ps.ExclusiveKey != "" {
			rest, _ := json.Marshal([]any{ps.OfNode, ps.Topology, ps.HostPorts, ps.ExclusiveKey})
			b = append(b, rest...)
		}
		if len(ps.Tolerations) > 0 || len(ps.NodeSelector) > 0 || ps.Affinity != nil || ps.NodeName != "" || ps.Unpinned {
			// Plain API structs: they always marshal, with sorted map keys.
			rest, _ := json.Marshal([]any{ps.Tolerations, ps.NodeSelector, ps.Affinity, ps.NodeName, ps.Unpinned})
			b = append(b, rest...)
		}
		if len(ps.Bounds) > 0 {
			rest, _ := json.Marshal(ps.Bounds)
			b = append(b, rest...)
		}
		b = append(b, ';')
	}
	return string(b)
}

// classKey groups the workloads of a queue for which the same capacity is available.
type classKey struct {
	shape    *shape
	priority int32
	local    Key
	// avoid are the nodes that kube-scheduler refused for them.
	avoid string
}

// class is the workloads of a queue that wait for the same thing: if the first does not fit, none does.
type class struct {
	// Class is what the waiting room knows of it: its workloads, and whether it is ready or blocked.
	waiting.Class
	classKey
	queue *clusterQueue
	from  *localQueue
	// why is the reason of all its workloads, as of the last evaluation.
	why reason.Reason
	// unreported are the workloads to which why was not reported yet.
	unreported []Key
	// otherwise are the workloads to which otherCode was reported in place of why, while the class could not be evaluated.
	otherwise []Key
	otherCode reason.Code
	// form is what the class requests of the queue at its revision formedOf. own is the least that it takes of the
	// queue's own quota, empty if it does not fit there; entitledAt is the position in clusterQueue.claimants.
	form       *flavor.Form
	formedOf   int
	own        quota.Vector
	entitledAt order.Place
	// never is whether the present nodes could hold it.
	never neverOnNodes
}

// classOf returns the class as the engine knows it, nil for nil.
func classOf(c *waiting.Class) *class {
	if c == nil {
		return nil
	}
	return c.Of.(*class)
}

// turn is the sort key of a waiting workload: the standing of its LocalQueue, if the ClusterQueue orders by usage,
// then its rank.
type turn struct {
	standing float64
	rank     order.Rank
}

func (t turn) before(other turn, q *clusterQueue) bool {
	if q.byUsage && t.standing != other.standing {
		return t.standing < other.standing
	}
	return order.Compare(t.rank, other.rank) < 0
}

func (c *class) turn() turn { return turn{c.from.Standing, c.Head()} }

func (w *workload) turn() turn { return turn{w.local.Standing, w.rank()} }
