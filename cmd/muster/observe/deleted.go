package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/cmd/muster/view"
)

// deletedJobs are the jobs that were deleted while they were watched and whose Workloads are still there. A Workload
// alone does not tell a job that was deleted from one of a kind that is not read.
type deletedJobs struct {
	present, deleted map[types.UID]bool
}

// note adds to the snapshot, and remembers, which jobs are gone since the one before.
func (d *deletedJobs) note(snapshot *view.Snapshot) {
	present, deleted := snapshot.JobUIDs(), map[types.UID]bool{}
	for i := range snapshot.Workloads {
		owner := metav1.GetControllerOf(&snapshot.Workloads[i])
		if owner != nil && !present[owner.UID] && (d.present[owner.UID] || d.deleted[owner.UID]) {
			deleted[owner.UID] = true
		}
	}
	d.present, d.deleted = present, deleted
	snapshot.Deleted = deleted
}
