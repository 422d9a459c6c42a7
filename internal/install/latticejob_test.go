package install

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLatticeJobChangesAreDeniedIfConfigured(t *testing.T) {
	policies, err := readPolicies("u", "")
	if err != nil {
		t.Fatal(err)
	}
	action := func() []string {
		for _, policy := range policies {
			if policy.GetKind() == "ValidatingAdmissionPolicyBinding" && policy.GetName() == immutableBinding {
				actions, _, _ := unstructured.NestedStringSlice(policy.Object, "spec", "validationActions")
				return actions
			}
		}
		return nil
	}
	if got := action(); !slices.Equal(got, []string{"Warn"}) {
		t.Errorf("default actions = %v, want Warn", got)
	}
	denyLatticeJobChanges(policies)
	if got := action(); !slices.Equal(got, []string{"Deny"}) {
		t.Errorf("actions with deny = %v, want Deny", got)
	}
}
