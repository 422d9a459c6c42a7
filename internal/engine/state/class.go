package state

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Shape is the pod sets of workloads: workloads of the same shape and priority in a queue either all fit or do not, so
// that only the first of them is evaluated.
type Shape struct {
	Key     string
	PodSets []flavor.PodSet
	Users   int
	// Elastic is set if a pod set is elastic.
	Elastic bool
}

// ShapeKey returns a string that is equal for equal pod sets.
func ShapeKey(podSets []flavor.PodSet) string {
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

// ClassKey groups the workloads of a queue for which the same capacity is available.
type ClassKey struct {
	Shape    *Shape
	Priority int32
	Local    order.Key
	// Avoid are the nodes that kube-scheduler refused for them.
	Avoid string
	// Lasts is how long they run. It is zero in a queue that plans no starts, where it does not matter.
	Lasts durations.Forecast
	// Apart separates a workload with a promised start from those that come before it and equal it in all else: in one
	// class, the first of them would take the promised start.
	Apart int
}

// Class is the workloads of a queue that wait for the same thing: if the first does not fit, none does.
type Class struct {
	// Class is what the waiting room knows of it: its workloads, and whether it is ready or blocked.
	waiting.Class
	ClassKey
	Queue      *ClusterQueue
	LocalQueue *LocalQueue
	// Why is the reason of all its workloads, as of the last evaluation.
	Why reason.Reason
	// Unreported are the workloads to which why was not reported yet.
	Unreported []order.Key
	// otherwise are the workloads to which OtherCode was reported in place of why, while the class could not be evaluated.
	Otherwise []order.Key
	OtherCode reason.Code
	// Form is what the class requests of the queue at its revision FormedOf. Own is the least that it takes of the
	// queue's own quota, empty if it does not fit there; EntitledAt is the position in ClusterQueue.Entitled.
	Form       *flavor.Form
	FormedOf   int
	Own        quota.Vector
	EntitledAt order.Place
	// Never is whether the present nodes could hold it.
	Never NeverOnNodes
	// Unplanned is the state in which no start could be planned for it.
	Unplanned waiting.State
}

// ClassOf returns the class as the engine knows it, nil for nil.
func ClassOf(c *waiting.Class) *Class {
	if c == nil {
		return nil
	}
	return c.Of.(*Class)
}

// Turn is the sort key of a waiting workload: the standing of its LocalQueue, if the ClusterQueue orders by usage,
// then its rank.
type Turn struct {
	Standing float64
	Rank     order.Rank
}

// Before reports whether a workload with this turn comes before another in the queue.
func (t Turn) Before(other Turn, q *ClusterQueue) bool {
	if q.RanksByUsage && t.Standing != other.Standing {
		return t.Standing < other.Standing
	}
	return order.Compare(t.Rank, other.Rank) < 0
}

// Turn returns the turn of the first workload of the class.
func (c *Class) Turn() Turn { return Turn{c.LocalQueue.Standing, c.Head()} }

// Turn returns the turn of the workload.
func (w *Workload) Turn() Turn { return Turn{w.Local.Standing, w.Rank()} }

// Alone returns a class of the workload alone, which is in no queue.
func Alone(w *Workload) *Class {
	c := &Class{ClassKey: ClassKey{Shape: w.Shape, Priority: w.Priority, Local: w.LocalKey()}, Queue: w.ClusterQueue,
		LocalQueue: w.Local}
	c.Class = waiting.Alone(c, w.Rank())
	return c
}

// NewClass returns a class without workloads.
func (cq *ClusterQueue) NewClass(key ClassKey, from *LocalQueue) *Class {
	c := &Class{ClassKey: key, Queue: cq, LocalQueue: from}
	c.Class = waiting.Class{Of: c, Priority: key.Priority, From: &from.Local, Usual: key.Lasts.Usual}
	cq.Waits.Adopt(&c.Class)
	cq.Classes[key], from.Classes[c] = c, struct{}{}
	return c
}

// LeaveClass removes the workload from its class.
func (w *Workload) LeaveClass() {
	c, q := w.Class, w.Class.Queue
	w.Class = nil
	wasHead := c.Leave(w.Key)
	if wasHead && (c.EntitledAt.In() || q.Family.PlansStartOf(w.Key)) {
		q.Family.Enqueue() // others may take what was kept for it
	}
	if wasHead && c.EntitledAt.In() && c.Len() > 0 {
		q.Entitled.Put(c)
	}
	if c.Len() == 0 {
		q.RemoveEntitled(c)
		delete(q.Classes, c.ClassKey)
		delete(c.LocalQueue.Classes, c)
	}
}

// NoteWhy sets the reason of the class, which is reported to all its workloads to which another one was reported.
func (c *Class) NoteWhy(why reason.Reason) {
	if why.Code.IsNews(c.Why.Code) || !why.SameBlame(c.Why) {
		c.ForgetReason()
	}
	c.ReportAgain()
	c.Why = why
}
