package observe

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
)

// TestAJobThatWasDeletedIsNotOneOfAnotherKind, for as long as its Workload is there.
func TestAJobThatWasDeletedIsNotOneOfAnotherKind(t *testing.T) {
	job := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "job-uid"}}
	workloadOf := func(owner types.UID) kueue.Workload {
		return kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: string(owner), OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "x", UID: owner}, batchv1.SchemeGroupVersion.WithKind("Job"))}}}
	}
	workloads := []kueue.Workload{workloadOf(job.UID), workloadOf("foreign-uid")}
	var watched deletedJobs
	for i, step := range []struct {
		jobs      []batchv1.Job
		workloads []kueue.Workload
		deleted   bool
	}{{nil, workloads, false}, {[]batchv1.Job{job}, workloads, false}, {nil, workloads, true}, {nil, workloads, true},
		{nil, workloads[1:], false}} {
		snapshot := &view.Snapshot{Jobs: step.jobs, Workloads: step.workloads}
		watched.note(snapshot)
		if snapshot.Deleted[job.UID] != step.deleted || snapshot.Deleted["foreign-uid"] {
			t.Errorf("step %d: deleted are %v, want the job: %v", i, snapshot.Deleted, step.deleted)
		}
	}
}
