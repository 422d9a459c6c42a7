package translate

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
)

// nodeWatch translates Nodes for the engine. It remembers since when nodes are not ready. It must be used by one
// goroutine only.
type nodeWatch struct {
	// grace is how long a node may be not ready before it is considered lost.
	grace time.Duration
	// unready are the nodes that are not ready, by name.
	unready map[string]unreadyNode
}

// unreadyNode is a node that is not ready, and considered lost from lostAt on; lost says that this time has come.
type unreadyNode struct {
	node   *corev1.Node
	lostAt time.Time
	lost   bool
}

func newNodeWatch(grace time.Duration) *nodeWatch {
	return &nodeWatch{grace: grace, unready: map[string]unreadyNode{}}
}

// set records the current state of a Node and translates it. A node that falls silent after it was not ready has a new
// time of transition, and a node that does so again and again would never be lost by that: what counts is how long it
// has not been ready in all.
func (n *nodeWatch) set(node *corev1.Node, now time.Time) place.Node {
	since := unreadySince(node, now)
	if since.IsZero() {
		delete(n.unready, node.Name)
		return nodeOf(node, false)
	}
	lostAt := since.Add(n.grace)
	if was, known := n.unready[node.Name]; known && was.node.UID == node.UID && was.lostAt.Before(lostAt) {
		lostAt = was.lostAt
	}
	lost := !now.Before(lostAt)
	n.unready[node.Name] = unreadyNode{node, lostAt, lost}
	return nodeOf(node, lost)
}

// forget drops the state of a deleted Node.
func (n *nodeWatch) forget(name string) { delete(n.unready, name) }

// due returns when the next grace period ends, zero if none is running.
func (n *nodeWatch) due() time.Time {
	var next time.Time
	for _, waiting := range n.unready {
		if !waiting.lost && (next.IsZero() || waiting.lostAt.Before(next)) {
			next = waiting.lostAt
		}
	}
	return next
}

// lost returns the nodes whose grace period has ended since the last call, ordered by name.
func (n *nodeWatch) lost(now time.Time) []place.Node {
	var out []place.Node
	for _, name := range slices.Sorted(maps.Keys(n.unready)) {
		if waiting := n.unready[name]; !waiting.lost && !now.Before(waiting.lostAt) {
			waiting.lost = true
			n.unready[name] = waiting
			out = append(out, nodeOf(waiting.node, true))
		}
	}
	return out
}

// unreadySince returns since when the Node is not ready, zero if it is ready. It is never later than now, so that a
// node clock that runs ahead does not prolong the grace period.
func unreadySince(node *corev1.Node, now time.Time) time.Time {
	since := node.CreationTimestamp.Time
	if ready := readiness(node); ready != nil {
		if ready.Status == corev1.ConditionTrue {
			return time.Time{}
		}
		since = ready.LastTransitionTime.Time
	}
	if since.IsZero() || since.After(now) {
		return now
	}
	return since
}

func readiness(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// nodeOf translates a Node for the engine. A deleted Node that a finalizer keeps counts as cordoned, not as failed: its
// autoscaler is draining it, and its pods run for as long as that lets them.
func nodeOf(node *corev1.Node, failed bool) place.Node {
	out := place.Node{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints,
		Allocatable: make(map[string]int64, len(node.Status.Allocatable)),
		Cordoned:    node.Spec.Unschedulable || !node.DeletionTimestamp.IsZero(), Failed: failed,
	}
	for name, amount := range node.Status.Allocatable {
		out.Allocatable[string(name)] = quota.FromQuantity(name, amount)
	}
	return out
}

// nodeChangeMatters reports whether a Node update matters to the engine: most are heartbeats.
func nodeChangeMatters(before, after *corev1.Node) bool {
	return before.Spec.Unschedulable != after.Spec.Unschedulable ||
		isReady(before) != isReady(after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.UID != after.UID ||
		!maps.Equal(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
		!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}

func isReady(node *corev1.Node) bool {
	ready := readiness(node)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// TopologyOf translates a Topology for the engine.
func TopologyOf(t *kueue.Topology) place.Topology {
	out := place.Topology{Name: t.Name}
	for _, level := range t.Spec.Levels {
		out.Levels = append(out.Levels, level.NodeLabel)
	}
	return out
}
