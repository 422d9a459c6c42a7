package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// What kube-scheduler knows of a node and place.Map does not, such as volumes or pod affinity, may change without an
// event. So a node that it refused for a pod is avoided as long as the workload has places, and for some time after
// it has lost them. One admission may take as many moves as there are refusing nodes, so that this time grows with
// their number, and with each repetition. Where a pod of the workload itself is the reason, the node is not avoided: it
// only gets fewer pods of the workload.

// avoidances has the workloads without places that avoid nodes.
type avoidances struct {
	workloads map[Key]*state.Workload
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
func (a *avoidances) limit(w *state.Workload) {
	if w.Held == nil && w.Avoid.Any() && !w.Avoid.Timed {
		a.untimed.Insert(w.Key)
	}
}

// schedule schedules the expiry for workloads that have lost their places.
func (a *avoidances) schedule(now time.Time) {
	for key := range a.untimed {
		of := &a.workloads[key].Avoid
		of.Timed = true
		a.timers.Set(waiting.ForgetAvoided, key, now.Add(of.Duration()))
	}
	clear(a.untimed)
}
