package soak

import (
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endless is how long pods run that do not end by themselves within a round.
const endless = "24h"

const simDuration = "muster.dev/sim-duration"

const (
	// endlessSuffix ends the names of LatticeJobs whose pods are endless.
	endlessSuffix = "e"
	// partlySuffix ends the names of batch Jobs and JobSets that come to be done in part: of each Job, the pod of index 0
	// ends, and all others are endless.
	partlySuffix = "p"
)

// isEndless is the CEL expression for the pods that the names of their jobs make endless. The name of a pod of a Job is
// not known yet when the policy sees it, but how it begins is.
const isEndless = `[object.metadata.?name.orValue(''), object.metadata.?generateName.orValue('')].exists(name,
	name.matches('^j[0-9]+` + endlessSuffix + `-') || name.matches('^j[0-9]+` + partlySuffix + `-')
	&& object.metadata.?labels[?'` + batchv1.JobCompletionIndexAnnotation + `'].orValue('0') != '0')`

// letPodsLast has the API server say how long some pods run whose jobs cannot say it: those of LatticeJobs, and of Jobs
// whose pods differ.
func (r *round) letPodsLast() {
	policy := &registration.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: registration.MutatingAdmissionPolicySpec{
			FailurePolicy:      ptr.To(registration.Fail),
			ReinvocationPolicy: registration.NeverReinvocationPolicy,
			MatchConstraints: &registration.MatchResources{
				ResourceRules: []registration.NamedRuleWithOperations{{RuleWithOperations: registration.RuleWithOperations{
					Operations: []registration.OperationType{registration.Create},
					Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}}},
			MatchConditions: []registration.MatchCondition{{Name: "named-endless", Expression: isEndless}},
			Mutations: []registration.Mutation{{PatchType: registration.PatchTypeJSONPatch, JSONPatch: &registration.JSONPatch{
				Expression: `[JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("` + simDuration +
					`"), value: "` + endless + `"}]`}}},
		},
	}
	binding := &registration.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: registration.MutatingAdmissionPolicyBindingSpec{
			PolicyName: r.Namespace,
			MatchResources: &registration.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: r.Namespace}}},
		}}
	r.Enforce(r.untilPodsLast, policy, binding)
}

// untilPodsLast waits for the policy: nothing in the API shows when it is in force, so it asks again.
func (r *round) untilPodsLast() {
	r.Helper()
	for {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "j0" + endlessSuffix + "-trial", Namespace: r.Namespace,
				Annotations: map[string]string{"trial": ""}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}},
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
