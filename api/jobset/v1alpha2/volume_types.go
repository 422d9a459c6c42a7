package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// VolumeClaimPolicy has templates of volume claims that Jobs of a JobSet share, and their retention policy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.templates) || self.templates.all(t, !has(t.metadata) || !has(t.metadata.__namespace__) || size(t.metadata.__namespace__) == 0)",message="namespace cannot be set for VolumeClaimPolicies templates"
type VolumeClaimPolicy struct {
	// templates of the claims, which are named <template>-<jobset>. A container of some replicated job must mount each
	// of them as a volume with the template's name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Templates []corev1.PersistentVolumeClaim `json:"templates,omitempty"`

	// retentionPolicy determines what happens to the claims when the JobSet is deleted.
	//
	// +optional
	// +kubebuilder:default={}
	RetentionPolicy *VolumeRetentionPolicy `json:"retentionPolicy,omitempty"`
}

// VolumeRetentionPolicy determines what happens to volume claims.
type VolumeRetentionPolicy struct {
	// whenDeleted: Delete the claims with the JobSet, or Retain them.
	//
	// +optional
	// +kubebuilder:default=Delete
	WhenDeleted *RetentionPolicyType `json:"whenDeleted,omitempty"`
}

// RetentionPolicyType determines whether a volume claim outlives its JobSet.
//
// +kubebuilder:validation:Enum=Delete;Retain
type RetentionPolicyType string

const (
	// RetentionPolicyDelete deletes the claim with the JobSet.
	RetentionPolicyDelete RetentionPolicyType = "Delete"
	// RetentionPolicyRetain keeps the claim.
	RetentionPolicyRetain RetentionPolicyType = "Retain"
)
