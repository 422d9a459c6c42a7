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

// A cluster's mutating policies may make a Workload ask for something else than its job: they may add tolerations or
// raise its requests. Comparing the two then does not show whether the job was changed since, and a replacement
// Workload would be mutated in the same way, so that the job would be queued again without end. So what the job asked
// for is recorded on the Workload, in an annotation that only the operator may write.

// askedVersion prefixes the digest. It must change whenever the same needs yield another digest: digests recorded by an
// earlier version for running jobs then cannot be compared, and those jobs must not be stopped for that.
const askedVersion = "v1-"

// askedFor returns a digest of what the pods of the pod sets need.
func askedFor(podSets []kueue.PodSet) string {
	type asked struct {
		Name  kueue.PodSetReference
		Needs corev1.PodSpec
	}
	all := make([]asked, 0, len(podSets))
	for i := range podSets {
		all = append(all, asked{podSets[i].Name, needs(&podSets[i].Template.Spec)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("encoding what pods need: " + err.Error()) // plain data cannot fail to encode
	}
	sum := sha256.Sum256(text)
	return askedVersion + hex.EncodeToString(sum[:16])
}

// noteAsked records on the Workload what the job asks for.
func noteAsked(w *kueue.Workload, podSets []kueue.PodSet) {
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, askedFor(podSets))
}

// updateAsked records on the Workload what its job asks for now if its pod sets change with that, or if what is recorded
// is of another version. Digests of other versions cannot be compared, so every later change of the job would pass for
// what was asked for.
func updateAsked(w, seen, described *kueue.Workload) {
	asked, recorded := described.Annotations[muster.AskedAnnotation], seen.Annotations[muster.AskedAnnotation]
	if asked == "" {
		return
	}
	if recorded != "" && !isComparable(recorded) || !equality.Semantic.DeepEqual(seen.Spec.PodSets, w.Spec.PodSets) {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.AskedAnnotation, asked)
	}
}

// isComparable reports whether the digest was recorded by a version that digests the same needs as this one does.
func isComparable(recorded string) bool { return strings.HasPrefix(recorded, askedVersion) }

// IsFor reports whether the quota of an Admitted job is for pods with the needs of these pod sets: either the Workload
// asks for the same, or the same was recorded when the job was queued. If what was recorded cannot be compared, it
// reports true: updateAsked replaces it.
func (a Admission) IsFor(podSets []kueue.PodSet) bool {
	other := slices.ContainsFunc(podSets, func(asks kueue.PodSet) bool {
		granted := a.PodSets[string(asks.Name)]
		return !granted.isFor(&asks.Template)
	})
	return !other || a.AskedDigest != "" && (a.AskedDigest == askedFor(podSets) || !isComparable(a.AskedDigest))
}
