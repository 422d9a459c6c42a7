package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// A cluster's mutating policies may make a Workload differ from its job: they may add tolerations or raise its
// requests. Comparing the two then does not show whether the job was changed since, and a replacement Workload would be
// mutated in the same way, so that the job would be queued again without end. So a digest of what the job's pods need
// is recorded on the Workload, in an annotation that only the operator may write.

// needsDigestVersion prefixes the digest. It must change whenever the same needs yield another digest: digests that an
// earlier version recorded for running jobs then cannot be compared, and those jobs must not be stopped for that.
const needsDigestVersion = "v1-"

// needsDigest returns a digest of what the pods of the pod sets need.
func needsDigest(podSets []kueue.PodSet) string {
	type podSetNeeds struct {
		Name  kueue.PodSetReference
		Needs corev1.PodSpec
	}
	all := make([]podSetNeeds, 0, len(podSets))
	for i := range podSets {
		all = append(all, podSetNeeds{podSets[i].Name, needs(&podSets[i].Template.Spec)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("encoding what pods need: " + err.Error()) // plain data cannot fail to encode
	}
	sum := sha256.Sum256(text)
	return needsDigestVersion + hex.EncodeToString(sum[:16])
}

// recordNeeds records on the Workload the digest of what its job's pods need.
func recordNeeds(w *kueue.Workload, podSets []kueue.PodSet) {
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, needsDigest(podSets))
}

// updateRecordedNeeds records on the Workload the digest of described if the pod sets of w differ from those of seen,
// or if the recorded digest is of another version. Such a digest cannot be compared, so that IsFor would accept every
// later change of the job.
func updateRecordedNeeds(w, seen, described *kueue.Workload) {
	digest, recorded := described.Annotations[muster.AskedAnnotation], seen.Annotations[muster.AskedAnnotation]
	if digest == "" {
		return
	}
	if recorded != "" && !isComparable(recorded) || !equality.Semantic.DeepEqual(seen.Spec.PodSets, w.Spec.PodSets) {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, digest)
	}
}

// isComparable reports whether the digest was recorded by a version that digests the same needs as this one does.
func isComparable(recorded string) bool { return strings.HasPrefix(recorded, needsDigestVersion) }

// IsFor reports whether the quota of an Admitted job is for pods with the needs of these pod sets: either those of the
// Workload are the same, or their digest was recorded when the job was queued. If the recorded digest cannot be
// compared, it reports true: updateRecordedNeeds replaces it.
func (a Admission) IsFor(podSets []kueue.PodSet) bool {
	differ := slices.ContainsFunc(podSets, func(ps kueue.PodSet) bool {
		granted := a.PodSets[string(ps.Name)]
		return !granted.isFor(&ps.Template)
	})
	return !differ || a.NeedsDigest != "" && (a.NeedsDigest == needsDigest(podSets) || !isComparable(a.NeedsDigest))
}
