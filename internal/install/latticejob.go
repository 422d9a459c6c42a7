package install

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// immutableBinding is the binding of the policy that warns of changes to a running LatticeJob.
const immutableBinding = "muster-latticejob-immutable"

// denyLatticeJobChanges makes that policy deny such changes.
func denyLatticeJobChanges(policies []*unstructured.Unstructured) {
	for _, policy := range policies {
		if policy.GetKind() == "ValidatingAdmissionPolicyBinding" && policy.GetName() == immutableBinding {
			// It cannot fail: every step of the path is a map.
			_ = unstructured.SetNestedStringSlice(policy.Object, []string{"Deny"}, "spec", "validationActions")
		}
	}
}
