package jobset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// claim is a volume claim that the Jobs of a JobSet share.
type claim struct {
	template *corev1.PersistentVolumeClaim
	retained bool
}

func claimsOf(js *jobset.JobSet) []claim {
	var out []claim
	for policy := range pointers.To(js.Spec.VolumeClaimPolicies) {
		retained := policy.RetentionPolicy != nil &&
			ptr.Deref(policy.RetentionPolicy.WhenDeleted, jobset.RetentionPolicyDelete) == jobset.RetentionPolicyRetain
		for j := range policy.Templates {
			out = append(out, claim{&policy.Templates[j], retained})
		}
	}
	return out
}

// name returns the claim's name in the namespace of the JobSet.
func (c claim) name(js *jobset.JobSet) string { return c.template.Name + "-" + js.Name }

// createClaims creates missing claims, and reports whether the existing ones can be used. If claims are retained, one
// may be left from an earlier JobSet, or may have been created by a user.
func (p *planner) createClaims() bool {
	there := map[string]*corev1.PersistentVolumeClaim{}
	for _, found := range jobs.ChildrenOf[*corev1.PersistentVolumeClaim](p.seen.Related) {
		there[found.Name] = found
	}
	usable := true
	for _, c := range claimsOf(p.js) {
		found := there[c.name(p.js)]
		switch {
		case found == nil:
			p.plan.Add(write.Create(p.newClaim(c)).OrWarn(jobset.PVCCreationFailedReason))
		case !found.DeletionTimestamp.IsZero():
			// It is gone once its pods are; the claim of a deleted JobSet is garbage collected.
			usable = false
			p.plan.DueBy(p.seen.Now.Add(pollInterval))
		case metav1.IsControlledBy(found, p.js):
		default:
			if why := unusable(c, found); why != "" {
				usable = false
				p.plan.AddEvents(write.Obstacle(jobset.PVCCreationFailedReason, fmt.Sprintf(
					"the PersistentVolumeClaim %s is there already and %s: delete it, or give the JobSet another name", found.Name, why)))
				p.plan.DueBy(p.seen.Now.Add(pollInterval))
			}
		}
	}
	return usable
}

// newClaim returns the claim as it is created. A retained one has no owner.
func (p *planner) newClaim(c claim) *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        c.name(p.js),
			Namespace:   p.js.Namespace,
			Labels:      podspec.Merged(c.template.Labels, map[string]string{jobset.JobSetNameKey: p.js.Name}),
			Annotations: c.template.Annotations,
		},
		Spec: *c.template.Spec.DeepCopy(),
	}
	if !c.retained {
		out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.js, kind)}
	}
	return out
}

// unusable says why a claim that the JobSet does not control cannot be used, "" if it can: it must offer at least what
// the template asks for. Fields that the template leaves open are defaulted by the API server and not compared.
func unusable(c claim, found *corev1.PersistentVolumeClaim) string {
	wanted := &c.template.Spec
	owner := metav1.GetControllerOf(found)
	size, has := wanted.Resources.Requests[corev1.ResourceStorage], found.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case owner != nil:
		return "belongs to the " + owner.Kind + " " + owner.Name
	case !c.retained:
		return "would be deleted with the JobSet, which did not make it (whenDeleted: Retain makes use of it)"
	case wanted.StorageClassName != nil &&
		!equality.Semantic.DeepEqual(wanted.StorageClassName, found.Spec.StorageClassName):
		return fmt.Sprintf("has the storage class %q, not %q", ptr.Deref(found.Spec.StorageClassName, ""),
			*wanted.StorageClassName)
	case wanted.VolumeMode != nil &&
		*wanted.VolumeMode != ptr.Deref(found.Spec.VolumeMode, corev1.PersistentVolumeFilesystem):
		return fmt.Sprintf("does not have the volume mode %s", *wanted.VolumeMode)
	case podspec.Compare(has, size) < 0:
		return fmt.Sprintf("has %s, less than %s", podspec.Text(has), podspec.Text(size))
	}
	for _, mode := range wanted.AccessModes {
		if !slices.Contains(found.Spec.AccessModes, mode) {
			return fmt.Sprintf("does not have the access mode %s", mode)
		}
	}
	return ""
}

// mount adds volumes for the claims that containers of the pod mount.
func mount(js *jobset.JobSet, pod *corev1.PodSpec) {
	mounted := map[string]bool{}
	for c := range podspec.Containers(pod) {
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = true
		}
	}
	for _, c := range claimsOf(js) {
		if mounted[c.template.Name] {
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: c.template.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.name(js)},
			}})
		}
	}
}
