package soak

import (
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endless is how long pods run that do not end by themselves within a round.
const endless = "24h"

const simDuration = "muster.dev/sim-duration"

// endlessSuffix ends the names of LatticeJobs whose pods are endless.
const endlessSuffix = "e"

// letLatticePodsLast has the API server say how long the pods of some LatticeJobs run, as such a job cannot.
func (r *round) letLatticePodsLast() {
	policy := &registration.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: registration.MutatingAdmissionPolicySpec{
			FailurePolicy:      ptr.To(registration.Fail),
			ReinvocationPolicy: registration.NeverReinvocationPolicy,
			MatchConstraints: &registration.MatchResources{ResourceRules: []registration.NamedRuleWithOperations{{RuleWithOperations: registration.RuleWithOperations{
				Operations: []registration.OperationType{registration.Create},
				Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}}},
			MatchConditions: []registration.MatchCondition{{Name: "named-endless", Expression: "has(object.metadata.name) && object.metadata.name.matches('^j[0-9]+" + endlessSuffix + "-')"}},
			Mutations: []registration.Mutation{{PatchType: registration.PatchTypeJSONPatch, JSONPatch: &registration.JSONPatch{
				Expression: `[JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("` + simDuration + `"), value: "` + endless + `"}]`}}},
		},
	}
	binding := &registration.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}, Spec: registration.MutatingAdmissionPolicyBindingSpec{
		PolicyName:     r.Namespace,
		MatchResources: &registration.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: r.Namespace}}},
	}}
	r.Enforce(r.untilPodsLast, policy, binding)
}

// untilPodsLast waits for the policy: nothing in the API shows when it is in force, so it asks again.
func (r *round) untilPodsLast() {
	r.Helper()
	for {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "j0" + endlessSuffix + "-trial", Namespace: r.Namespace, Annotations: map[string]string{"trial": ""}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}},
		}
		if err := r.Client.Create(r.Context(), pod, client.DryRunAll); err != nil {
			r.Fatal(err)
		}
		if pod.Annotations[simDuration] == endless {
			return
		}
		r.sleep(100 * time.Millisecond)
	}
}
