package install

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// immutableBinding is the binding of the policy that warns of changes of a LatticeJob that runs.
const immutableBinding = "muster-latticejob-immutable"

// denyLatticeJobChanges has the policy refuse what it warns of.
func denyLatticeJobChanges(policies []*unstructured.Unstructured) {
	for _, policy := range policies {
		if policy.GetKind() == "ValidatingAdmissionPolicyBinding" && policy.GetName() == immutableBinding {
			// The path leads through maps, so that it cannot fail.
			_ = unstructured.SetNestedStringSlice(policy.Object, []string{"Deny"}, "spec", "validationActions")
		}
	}
}
