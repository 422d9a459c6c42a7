package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// isFor reports whether the quota is for pods with the needs of this template.
func (p PodSetAdmission) isFor(template *corev1.PodTemplateSpec) bool {
	return p.Template == nil || podspec.SameNeeds(&p.Template.Spec, &template.Spec)
}

// HeldTemplate returns the template if the quota is for its pods, else the admitted one: a job changed after its
// admission to need something else gets no more than it has quota for. The result must not be modified.
func (p PodSetAdmission) HeldTemplate(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if p.isFor(template) {
		return template
	}
	return p.Template
}

// needsDigestVersion prefixes the digest. It must change whenever the same needs yield another digest: digests that an
// earlier version recorded for running jobs then cannot be compared, and the running jobs must not be stopped for that.
const needsDigestVersion = "v1-"

// NeedsDigest returns a digest of what the pods of the pod sets need.
func NeedsDigest(podSets []kueue.PodSet) string {
	type podSetNeeds struct {
		Name  kueue.PodSetReference
		Needs corev1.PodSpec
	}
	all := make([]podSetNeeds, 0, len(podSets))
	for podSet := range pointers.To(podSets) {
		all = append(all, podSetNeeds{podSet.Name, podspec.Needs(&podSet.Template.Spec)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("encoding what pods need: " + err.Error()) // plain data cannot fail to encode
	}
	sum := sha256.Sum256(text)
	return needsDigestVersion + hex.EncodeToString(sum[:16])
}

// ComparableDigest reports whether the digest was recorded by a version that digests the same needs as this one does.
func ComparableDigest(recorded string) bool { return strings.HasPrefix(recorded, needsDigestVersion) }

// IsFor reports whether the quota of an Admitted job is for pods with the needs of these pod sets: either the pod sets
// of the Workload are the same, or their digest was recorded when the job was queued. If the recorded digest cannot be
// compared, it reports true: updateRecordedNeeds replaces it.
func (a Admission) IsFor(podSets []kueue.PodSet) bool {
	differ := slices.ContainsFunc(podSets, func(ps kueue.PodSet) bool {
		granted := a.PodSets[string(ps.Name)]
		return !granted.isFor(&ps.Template)
	})
	return !differ || a.NeedsDigest != "" && (a.NeedsDigest == NeedsDigest(podSets) || !ComparableDigest(a.NeedsDigest))
}
