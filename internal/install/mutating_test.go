package install_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestMutatingPoliciesAreBoundAndIgnoreFailures: an error in such a policy must not prevent the creation of Jobs, and
// without a binding it would have no effect.
func TestMutatingPoliciesAreBoundAndIgnoreFailures(t *testing.T) {
	cluster := testcluster.Get(t)
	if err := install.Apply(t.Context(), cluster.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	direct := clientOf(t, cluster.Config)
	var policies admissionv1.MutatingAdmissionPolicyList
	var bindings admissionv1.MutatingAdmissionPolicyBindingList
	if err := direct.List(t.Context(), &policies); err != nil {
		t.Fatal(err)
	}
	if err := direct.List(t.Context(), &bindings); err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	for _, binding := range bindings.Items {
		bound[binding.Spec.PolicyName] = true
	}
	if len(policies.Items) == 0 {
		t.Error("found no mutating policies")
	}
	for _, policy := range policies.Items {
		if !bound[policy.Name] || *policy.Spec.FailurePolicy != admissionv1.Ignore {
			t.Errorf("policy %s: bound = %v, failure policy %s, want bound and Ignore", policy.Name, bound[policy.Name],
				*policy.Spec.FailurePolicy)
		}
	}
}
