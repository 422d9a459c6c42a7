package jobset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// claimSpec returns the spec of a shared volume of this size.
func claimSpec(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}
}

// withClaim adds a claim template that the workers mount, and the leader does not.
func (s setBuilder) withClaim(template string, whenDeleted jobset.RetentionPolicyType) setBuilder {
	s.js.Spec.VolumeClaimPolicies = append(s.js.Spec.VolumeClaimPolicies, jobset.VolumeClaimPolicy{
		Templates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: template, Labels: map[string]string{"l": "1"},
				Annotations: map[string]string{"a": "1"}}, Spec: claimSpec("1Gi")}},
		RetentionPolicy: &jobset.VolumeRetentionPolicy{WhenDeleted: &whenDeleted},
	})
	c := &s.js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: template, MountPath: "/" + template})
	return s
}

func TestClaimsAreCreatedAndMounted(t *testing.T) {
	p := checkedPlan(t, newSet().withClaim("data", jobset.RetentionPolicyDelete).withClaim("models",
		jobset.RetentionPolicyRetain).js, unqueued, nil)
	want := func(name string, owners []metav1.OwnerReference) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
			OwnerReferences: owners,
			Labels:          map[string]string{"l": "1", "jobset.sigs.k8s.io/jobset-name": "js"},
			Annotations:     map[string]string{"a": "1"}}, Spec: claimSpec("1Gi")}
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{want("data-js", ownedByTheSet()), want("models-js", nil)} {
		if diff := cmp.Diff(client.Object(claim), created(p)[claim.Name]); diff != "" {
			t.Errorf("PersistentVolumeClaim %s (-want +got):\n%s", claim.Name, diff)
		}
	}
	mounted := func(name, claim string) corev1.Volume {
		return corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
	}
	same(t, "volumes of the workers", []corev1.Volume{mounted("data", "data-js"), mounted("models", "models-js")},
		createdJob(t, p, "js-workers-0").Spec.Template.Spec.Volumes)
	same(t, "volumes of the leader, which mounts none", nil, createdJob(t, p, "js-leader-0").Spec.Template.Spec.Volumes)
}

// TestExistingClaims checks which existing claims a JobSet uses, and which prevent its start.
func TestExistingClaims(t *testing.T) {
	all := []string{"create Service js", "create Job js-leader-0", "create Job js-workers-0", "create Job js-workers-1"}
	const event = "Warning PVCCreationFailed: the PersistentVolumeClaim data-js is there already and "
	const remedy = ": delete it, or give the JobSet another name"
	for name, tc := range map[string]struct {
		policy jobset.RetentionPolicyType
		found  func(*corev1.PersistentVolumeClaim)
		writes []string
		events []string
	}{
		"own claim": {jobset.RetentionPolicyDelete,
			func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = ownedByTheSet() }, all, nil},
		"retained, with the API server's defaults": {jobset.RetentionPolicyRetain, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName, c.Spec.VolumeMode, c.Spec.VolumeName = ptr.To("standard"),
				ptr.To(corev1.PersistentVolumeFilesystem), "pv-1"
		}, all, nil},
		"larger": {jobset.RetentionPolicyRetain,
			func(c *corev1.PersistentVolumeClaim) { c.Spec = claimSpec("2Gi") }, all, nil},
		"smaller": {jobset.RetentionPolicyRetain, func(c *corev1.PersistentVolumeClaim) { c.Spec = claimSpec("500Mi") },
			[]string{"create Service js"}, []string{event + "has 500Mi, less than 1Gi" + remedy}},
		"other access mode": {jobset.RetentionPolicyRetain, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		}, []string{"create Service js"}, []string{event + "does not have the access mode ReadWriteMany" + remedy}},
		"without an owner, which would be deleted with the JobSet": {jobset.RetentionPolicyDelete,
			func(*corev1.PersistentVolumeClaim) {}, []string{"create Service js"},
			[]string{event + "would be deleted with the JobSet, which did not make it (whenDeleted: Retain makes use of it)" + remedy}},
		"another owner's": {jobset.RetentionPolicyRetain, func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db",
				Controller: ptr.To(true)}}
		}, []string{"create Service js"}, []string{event + "belongs to the StatefulSet db" + remedy}},
		"terminating": {jobset.RetentionPolicyDelete, func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}, []string{"create Service js"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-js", Namespace: "ns"},
				Spec: claimSpec("1Gi")}
			tc.found(found)
			p := checkedPlan(t, newSet().withClaim("data", tc.policy).js, unqueued, []client.Object{found})
			same(t, "writes", tc.writes, writes(p))
			same(t, "events", tc.events, events(p))
			if waits := len(tc.writes) == 1; waits != !p.Due.IsZero() {
				t.Errorf("due %v, want a due time: %v", p.Due, waits)
			}
		})
	}
}
