package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/engine/place"
)

// LongestAvoidance bounds how long a waiting workload avoids nodes.
const LongestAvoidance = time.Hour

// Avoidance is the nodes that kube-scheduler refused for a workload.
type Avoidance struct {
	// Nodes are sorted, and named as in places.
	Nodes []string
	// Limits are the most pods of the workload on some nodes, sorted: kube-scheduler refused more there, beside pods of
	// the workload itself.
	Limits []place.NodeCount
	// Why is what kube-scheduler said of the last one.
	Why string
	// Times counts how often they expired. timed is set while an expiry is scheduled.
	Times int
	Timed bool
}

// Limit sets the most pods of the workload on a node.
func (a *Avoidance) Limit(node string, most int32) {
	a.Limits = slices.DeleteFunc(slices.Clone(a.Limits), func(at place.NodeCount) bool { return at.Node == node })
	a.Limits = append(a.Limits, place.NodeCount{Node: node, Count: most})
	slices.SortFunc(a.Limits, func(a, b place.NodeCount) int { return strings.Compare(a.Node, b.Node) })
}

// Any reports whether there is anything to forget.
func (a *Avoidance) Any() bool { return len(a.Nodes)+len(a.Limits) > 0 }

// Key is equal for equal nodes and limits.
func (a *Avoidance) Key() string {
	if len(a.Limits) == 0 {
		return strings.Join(a.Nodes, ",")
	}
	return fmt.Sprintf("%s|%v", strings.Join(a.Nodes, ","), a.Limits)
}

// Duration returns how long the nodes are avoided by a workload that waits.
func (a *Avoidance) Duration() time.Duration {
	return min(time.Duration(len(a.Nodes)+len(a.Limits))*RetryAfter(a.Times+1), LongestAvoidance)
}
