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

// tally counts the changes of Workloads that the driver sees and did not make itself. Each is one successful write.
type tally struct {
	admissions int // status.admission was set
	evictions  int // Evicted became true
	releases   int // status.admission was removed
	reasons    int // QuotaReserved is false, with the reason
	other      int
}

// count counts a change. It must be called before the job is updated from it.
func (t *tally) count(j *job, c *change) {
	hasAdmission, finished := c.Object.Status.Admission != nil, c.is(kueue.WorkloadFinished)
	switch {
	case c.Type == "ADDED", finished && !j.done: // the driver's own write
	case c.is(kueue.WorkloadEvicted) && !j.evicted:
		t.evictions++
	case hasAdmission && !j.hasAdmission:
		t.admissions++
	case !hasAdmission && j.hasAdmission:
		t.releases++
	case !hasAdmission && !finished && c.condition(kueue.WorkloadQuotaReserved, metav1.ConditionFalse):
		t.reasons++
	default:
		t.other++
	}
}

// writes holds the numbers of the operator's mutating requests: those that the API server counted, less the driver's
// own. On a control plane without nodes there are no other writers except of leases, which do not count.
type writes struct {
	tally
	queueStatus int
	// conflicts is the number of writes of a Workload's status that had no effect.
	conflicts int
	// others holds the numbers of all other writes by verb and resource.
	others map[string]int
}

// countWrites returns the writes since the count before. The tally is that of the play; creations and ownStatus are the
// numbers of the driver's own creations and status writes.
func countWrites(t *testing.T, cluster *testcluster.Cluster, before map[string]float64, n tally,
	creations, ownStatus int) writes {
	t.Helper()
	out := writes{tally: n, others: map[string]int{}}
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
				out.others[what] += wrote
			}
		}
	}
	out.conflicts = status - n.admissions - n.evictions - n.releases - n.reasons - n.other
	return out
}

// total returns the number of all writes.
func (w *writes) total() int {
	sum := w.admissions + w.evictions + w.releases + w.reasons + w.other + w.queueStatus + w.conflicts
	for _, count := range w.others {
		sum += count
	}
	return sum
}

// othersText formats the other writes for a row.
func (w *writes) othersText() string {
	if len(w.others) == 0 {
		return "0"
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(w.others)) {
		out = append(out, fmt.Sprintf("%d %s", w.others[what], what))
	}
	return strings.Join(out, ", ")
}
