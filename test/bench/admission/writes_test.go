//go:build bench

package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// tally counts what was done to Workloads by others than their driver, as its watch
// shows it: each change is one write that took effect.
type tally struct {
	admissions int // status.admission set
	evictions  int // Evicted has become true
	releases   int // status.admission taken away
	reasons    int // QuotaReserved is false: why it waits
	other      int
}

// count takes in a change, before the job does.
func (n *tally) count(j *job, c *change) {
	holds, finished := c.Object.Status.Admission != nil, c.is(kueue.WorkloadFinished)
	switch {
	case c.Type == "ADDED", finished && !j.done: // the driver's own
	case c.is(kueue.WorkloadEvicted) && !j.evicted:
		n.evictions++
	case holds && !j.holds:
		n.admissions++
	case !holds && j.holds:
		n.releases++
	case !holds && !finished && c.condition(kueue.WorkloadQuotaReserved, metav1.ConditionFalse):
		n.reasons++
	default:
		n.other++
	}
}

// writes are the requests of the operator that would change something. The API
// server counted all there were; the driver's own are known and taken off. Nobody
// else writes on a control plane without nodes, but for leases, which do not count.
type writes struct {
	tally
	queueStatus int
	// vain are those of a Workload's status that changed nothing: conflicts.
	vain int
	// elsewhere are all others, by verb and resource.
	elsewhere map[string]int
}

// countWrites counts what was written since before; own are the driver's.
func countWrites(t *testing.T, cluster *testcluster.Cluster, before map[string]float64, n tally, creations, ownStatus int) writes {
	t.Helper()
	out := writes{tally: n, elsewhere: map[string]int{}}
	status := -ownStatus
	for what, count := range cluster.Writes(t) {
		verb, resource, _ := strings.Cut(what, " ")
		wrote := int(count - before[what])
		switch {
		case resource == "workloads/status":
			status += wrote
		case resource == "clusterqueues/status" || resource == "localqueues/status":
			out.queueStatus += wrote
		case resource == "workloads" && verb == "POST":
			wrote -= creations
			fallthrough
		default:
			if wrote != 0 {
				out.elsewhere[what] += wrote
			}
		}
	}
	out.vain = status - n.admissions - n.evictions - n.releases - n.reasons - n.other
	return out
}

// total is all of them.
func (w *writes) total() int {
	sum := w.admissions + w.evictions + w.releases + w.reasons + w.other + w.queueStatus + w.vain
	for _, count := range w.elsewhere {
		sum += count
	}
	return sum
}

func (w *writes) elsewhereText() string {
	if len(w.elsewhere) == 0 {
		return "0"
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(w.elsewhere)) {
		out = append(out, fmt.Sprintf("%d %s", w.elsewhere[what], what))
	}
	return strings.Join(out, ", ")
}
