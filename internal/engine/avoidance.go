package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/engine/place"
)

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

// retryAfter returns the delay after so many rejections.
func retryAfter(times int) time.Duration {
	wait := firstRetry
	for range times - 1 {
		if wait *= 2; wait >= longestRetry {
			return longestRetry
		}
	}
	return wait
}

// A rejected decision is tried again: a policy or a quota of the API server may have caused the rejection, and may be
// fixed without a change of the workload. The first try comes after firstRetry, each later one after twice the delay,
// up to longestRetry.
//
// Until then, a workload that could not be evicted or shrunk is left alone: no other waits for what it has, and other
// victims are chosen. A workload that could not be grown or given other places gets no such decision, but can be
// evicted or shrunk as usual.
const (
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)
