package workloads

import (
	"k8s.io/apimachinery/pkg/api/meta"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// limited adds to what the job was granted when its queue wants the quota back. w, the Workload of the job, may be nil.
func limited(out jobs.Admission, w *kueue.Workload, queues jobs.QueueFacts) jobs.Admission {
	if w == nil || w.Status.Admission == nil {
		return out
	}
	admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted)
	bound, source := workload.QueueLimit(queues.Local[string(w.Spec.QueueName)],
		queues.Cluster[string(w.Status.Admission.ClusterQueue)])
	if admitted == nil || bound == 0 {
		return out
	}
	out.Until, out.Bound, out.BoundSource = admitted.LastTransitionTime.Add(bound), bound, source
	return out
}
