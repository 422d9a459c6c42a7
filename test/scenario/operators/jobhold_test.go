package operators

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestAQueueCalledDefaultHoldsJobs that name none, if a person has made it; and whoever has none pays nothing for
// asking: a policy whose parameter is not there by its name has the API server read it from the database for every Job
// of the cluster.
func TestAQueueCalledDefaultHoldsJobs(t *testing.T) {
	const queues = "GET localqueues"
	w := newWorld(t)
	free := func(name string) *batchv1.Job {
		job := w.Job(name, "", 1)
		delete(job.Labels, kueue.QueueLabel)
		return job
	}
	before := w.Cluster.Gets(t)[queues]
	w.Create(free("a"))
	w.UntilJob("a", "has a pod", func(job *batchv1.Job) bool { return job.Status.Active == 1 })
	if reads := w.Cluster.Gets(t)[queues] - before; reads != 0 {
		t.Errorf("the API server read LocalQueues %v times for a Job", reads)
	}

	other := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: "none"}}
	byMuster := other.DeepCopy()
	byMuster.Name, byMuster.Labels = "default", map[string]string{muster.MadeForLabel: "x"}
	w.Create(other, byMuster)
	w.UntilHeld(free("b"), false)
	w.Create(free("b"))
	w.UntilJob("b", "has a pod", func(job *batchv1.Job) bool { return job.Status.Active == 1 })

	// There is no operator here to hear of it, for whom Change would wait.
	if err := w.Client.Patch(t.Context(), byMuster,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.UntilHeld(free("c"), true)
	if err := w.Client.Delete(t.Context(), byMuster, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.UntilHeld(free("c"), false)
}
