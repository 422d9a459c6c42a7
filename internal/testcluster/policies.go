package testcluster

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// probe is the name of a policy, of its binding and of the only object that it denies.
const probe = "muster-testcluster-probe"

// dryRun keeps what is created from being stored.
var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// waitUntilPoliciesAreEnforced waits until all admission policies written before are enforced. The API server does not
// report that, but it observes policies in the order in which they were written: so write one more, and try in dry runs
// what it denies.
func waitUntilPoliciesAreEnforced(ctx context.Context, client kubernetes.Interface) error {
	if err := makeProbe(ctx, client); err != nil {
		return fmt.Errorf("making the probe: %w", err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: probe}}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, configMap, dryRun)
		if apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
}

// waitUntilJobsAreSuspended waits until the API server suspends batch Jobs that name a queue at their creation, if a
// mutating policy does that. Mutating policies are observed by a separate watch.
func waitUntilJobsAreSuspended(ctx context.Context, client kubernetes.Interface) error {
	switch _, err := client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Get(ctx, "muster-job-hold",
		metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for the policy: %w", err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: probe, Labels: map[string]string{kueue.QueueLabel: probe}}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "example.com/probe"}}}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		made, err := client.BatchV1().Jobs(metav1.NamespaceDefault).Create(ctx, job, dryRun)
		return err == nil && ptr.Deref(made.Spec.Suspend, false), err
	})
}

func makeProbe(ctx context.Context, client kubernetes.Interface) error {
	invalid := metav1.StatusReasonInvalid
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: probe},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
							Resources: []string{"configmaps"}},
					},
					ResourceNames: []string{probe},
				}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "policies are in force", Reason: &invalid}},
		},
	}
	if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy,
		metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: probe},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        probe,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding,
		metav1.CreateOptions{})
	return err
}
