package workloads

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// A cluster's mutating policies may make a Workload differ from its job: they may add tolerations or raise its
// requests. Comparing the two then does not show whether the job was changed since, and a replacement Workload would be
// mutated in the same way, so that the job would be queued again without end. So a digest of what the job's pods need
// is recorded on the Workload, in an annotation that only the operator may write.

// recordNeeds records on the Workload the digest of what its job's pods need.
func recordNeeds(w *kueue.Workload, podSets []kueue.PodSet) {
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, jobs.NeedsDigest(podSets))
}

// updateRecordedNeeds records on the Workload the digest of described if w and seen differ in their pod sets, or if the
// recorded digest is of another version. A digest of another version cannot be compared, so that IsFor would accept
// every later change of the job.
func updateRecordedNeeds(w, seen, described *kueue.Workload) {
	digest, recorded := described.Annotations[muster.AskedAnnotation], seen.Annotations[muster.AskedAnnotation]
	if digest == "" {
		return
	}
	if recorded != "" && !jobs.ComparableDigest(recorded) ||
		!equality.Semantic.DeepEqual(seen.Spec.PodSets, w.Spec.PodSets) {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, digest)
	}
}
