package watching

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/musterhq/muster/internal/jobs"
)

// NodeGains remembers when nodes last became able to take more pods. It is safe for concurrent use.
type NodeGains struct{ at atomic.Pointer[time.Time] }

func (n *NodeGains) Note(now time.Time) { n.at.Store(&now) }

// Last returns when that was, zero if it was not seen.
func (n *NodeGains) Last() time.Time {
	if at := n.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// GainsOfNodes lets through the events after which nodes may take pods that they did not take before.
var GainsOfNodes = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return nodeGained(e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node))
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// nodeGained reports whether the node may take pods that it did not take before the change: most changes are
// heartbeats.
func nodeGained(before, after *corev1.Node) bool {
	if before.Spec.Unschedulable && !after.Spec.Unschedulable || !jobs.IsReadyNode(before) && jobs.IsReadyNode(after) ||
		!maps.Equal(before.Labels, after.Labels) {
		return true
	}
	if slices.ContainsFunc(before.Spec.Taints, func(t corev1.Taint) bool {
		return !slices.ContainsFunc(after.Spec.Taints,
			func(u corev1.Taint) bool { return t.MatchTaint(&u) && t.Value == u.Value })
	}) {
		return true
	}
	for name, amount := range after.Status.Allocatable {
		if amount.Cmp(before.Status.Allocatable[name]) > 0 {
			return true
		}
	}
	return false
}
