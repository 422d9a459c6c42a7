package scenario

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// TestAGangWithRejectedPodsReleasesItsQuota: the API server creates the first of a gang's two pods and rejects the
// other. The gang is evicted with the error as the reason, its quota goes to the next Workload, and it is requeued
// after a back-off. It runs once its pods are no longer rejected. The cases run in parallel because they mostly wait.
func TestAGangWithRejectedPodsReleasesItsQuota(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gang func(w *world) client.Object
		// reject makes the API server reject the second pod with this text in its error, until allow is called.
		reject func(w *world, text string) (allow func())
		text   string
	}{
		"ResourceQuota": {func(w *world) client.Object { return w.gang("gang", "gpu", 2, time.Hour) },
			(*world).limitToOnePod, "exceeded quota: one-pod"},
		"PodSecurity": {(*world).hostNetworkGang, (*world).enforcePodSecurity,
			`violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		"ValidatingAdmissionPolicy":      {(*world).indexedGang, (*world).rejectOtherRanks, "rank 0 is enough"},
		"ValidatingWebhookConfiguration": {(*world).genericGang, (*world).rejectByWebhook, "we have seen enough of these"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gpuQueue("gpu", 2)
			allow := tc.reject(w, tc.text)
			history := harness.Record(w.World)
			gang := tc.gang(w)
			if job, ok := gang.(*batchv1.Job); ok {
				w.untilHeld(job)
			}
			w.Create(gang)
			w.UntilWorkloadOf("gang", "runs", runs)
			w.Create(w.bare("next", "gpu", 2))

			released := w.UntilWorkloadOf("gang", "is evicted", harness.IsEvicted(kueue.WorkloadEvictedByPodsReadyTimeout))
			checkRelease(t, released, tc.text)
			harness.Until(w.World, &corev1.PodList{}, "all pods of the gang are deleted",
				func(list *corev1.PodList) bool { return len(list.Items) == 0 })
			w.UntilWorkload("next", "runs", runs)

			// Deactivation clears the back-off, so the gang can be requeued at once after a repair.
			allow()
			w.activate(released.Name, false)
			w.UntilWorkload(released.Name, "has no back-off",
				func(o *kueue.Workload) bool { return o.Status.RequeueState == nil })
			w.activate(released.Name, true)
			w.finish("next")
			ready := w.UntilWorkloadOf("gang", "is ready", func(o *kueue.Workload) bool {
				return runs(o) && meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadPodsReady)
			})
			history.WaitFor(ready)
			if evicted := history.Conditions("gang", kueue.WorkloadEvicted); len(evicted) != 3 ||
				!strings.HasPrefix(evicted[0], "True PodsReadyTimeout: ") || !strings.HasPrefix(evicted[1], "True Deactivated: ") {
				t.Errorf("states of the condition Evicted = %q, want 3: PodsReadyTimeout, Deactivated and the requeuing", evicted)
			}
		})
	}
}

// checkRelease checks the status of a gang that was evicted because its pods were rejected with this text.
func checkRelease(t *testing.T, released *kueue.Workload, text string) {
	t.Helper()
	evicted := meta.FindStatusCondition(released.Status.Conditions, kueue.WorkloadEvicted)
	if !strings.HasPrefix(evicted.Message, "Its pods cannot be created: ") || !strings.Contains(evicted.Message, text) {
		t.Errorf("condition Evicted has the message %q, want that pods are refused, with %q", evicted.Message, text)
	}
	if !is(released, kueue.WorkloadRequeued, metav1.ConditionFalse, kueue.WorkloadEvictedByPodsReadyTimeout) {
		t.Errorf("conditions = %+v, want Requeued=False with reason PodsReadyTimeout", released.Status.Conditions)
	}
	want := []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPodsReadyTimeout,
		UnderlyingCause: "PodsRefused", Count: 1}}
	if diff := cmp.Diff(want, released.Status.SchedulingStats.Evictions); diff != "" {
		t.Errorf("evictions in the status (-want +got):\n%s", diff)
	}
	state := released.Status.RequeueState
	if state == nil || state.RequeueAt == nil || ptr.Deref(state.Count, 0) != 1 {
		t.Fatalf("requeue state = %+v, want count 1 and a time", state)
	}
	if backoff := state.RequeueAt.Sub(evicted.LastTransitionTime.Time); backoff != time.Minute {
		t.Errorf("back-off is %s, want 1m", backoff)
	}
}

// limitToOnePod creates a ResourceQuota of one pod and no Secrets. Since there is no pod yet, only the rejection of
// Secrets can show that it is enforced: w.Create waits for that.
func (w *world) limitToOnePod(string) (allow func()) {
	w.Helper()
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "one-pod", Namespace: w.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1"),
			corev1.ResourceSecrets: resource.MustParse("0")}}}
	w.Create(limit)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: w.Namespace}}
	return func() { w.Delete(limit); w.untilRejected(secret, "") }
}

// hostNetworkGang returns a JobSet of two Jobs with one pod each, of which the second uses the network of its node.
func (w *world) hostNetworkGang() client.Object {
	js := w.gang("gang", "gpu", 1, time.Hour)
	hosted := js.Spec.ReplicatedJobs[0].DeepCopy()
	hosted.Name, hosted.Template.Spec.Template.Spec.HostNetwork = "hosted", true
	js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *hosted)
	return js
}

// enforcePodSecurity makes PodSecurity reject pods with hostNetwork in the namespace.
func (w *world) enforcePodSecurity(text string) (allow func()) {
	w.Helper()
	hosted := w.pod("any", nil)
	hosted.Spec.HostNetwork = true
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	w.Patch(namespace, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`)
	w.untilRejected(hosted, text)
	return func() {
		w.Patch(namespace, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": null}}}`)
		w.untilRejected(hosted, "")
	}
}

// indexedGang returns an Indexed Job of two pods.
func (w *world) indexedGang() client.Object {
	job := w.batchJob("gang", "gpu", 2, time.Hour)
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	return job
}

// rejectOtherRanks makes a ValidatingAdmissionPolicy reject pods with a completion index other than 0.
func (w *world) rejectOtherRanks(text string) (allow func()) {
	w.Helper()
	const rank = "object.metadata.?labels[?'" + batchv1.JobCompletionIndexAnnotation + "'].orValue('0')"
	policy := &registration.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: registration.ValidatingAdmissionPolicySpec{
			MatchConstraints: &registration.MatchResources{
				NamespaceSelector: w.namespaceSelector(),
				ResourceRules:     []registration.NamedRuleWithOperations{{RuleWithOperations: creationsOfPods}},
			},
			Validations: []registration.Validation{{Expression: rank + " == '0'", Message: text}},
		}}
	binding := &registration.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: registration.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []registration.ValidationAction{registration.Deny}}}
	second := w.pod("any", map[string]string{batchv1.JobCompletionIndexAnnotation: "1"})
	w.Enforce(func() { w.untilRejected(second, text) }, policy, binding)
	return func() { w.Delete(binding); w.untilRejected(second, "") }
}

// genericGang returns a GenericJob of two pods, which the operator creates itself.
func (w *world) genericGang() client.Object {
	return &tensorstack.GenericJob{
		ObjectMeta: metav1.ObjectMeta{Name: "gang", Namespace: w.Namespace,
			Labels: map[string]string{kueue.QueueLabel: "gpu"}},
		Spec: tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{{
			Type: "worker", Replicas: ptr.To[int32](2), Template: w.batchJob("", "", 2, time.Hour).Spec.Template}}},
	}
}

// rejectByWebhook makes a webhook reject pods whose names end in 1.
func (w *world) rejectByWebhook(text string) (allow func()) {
	w.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID,
			Allowed: !strings.HasSuffix(review.Request.Name, "1"),
			Result:  &metav1.Status{Message: text}}
		_ = json.NewEncoder(out).Encode(review) // the client may have disconnected
	}))
	w.Cleanup(server.Close)
	webhook := &registration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "pods.example.com",
			ClientConfig: registration.WebhookClientConfig{URL: &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules:             []registration.RuleWithOperations{creationsOfPods},
			NamespaceSelector: w.namespaceSelector(),
			FailurePolicy:     ptr.To(registration.Fail), SideEffects: ptr.To(registration.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}}}
	second := w.pod("gang-1", nil)
	w.Enforce(func() { w.untilRejected(second, text) }, webhook)
	return func() { w.Delete(webhook); w.untilRejected(second, "") }
}

// creationsOfPods are the requests that the policies and webhooks of these tests handle.
var creationsOfPods = registration.RuleWithOperations{
	Operations: []registration.OperationType{registration.Create},
	Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
}

// namespaceSelector returns a selector of only the world's namespace.
func (w *world) namespaceSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}}
}

// pod returns a pod like those of the gangs.
func (w *world) pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: labels},
		Spec: w.batchJob("", "", 1, 0).Spec.Template.Spec}
}

// untilRejected waits until the API server rejects the object with this text in its error or, if text is empty, accepts
// it: quotas, policies and webhooks take effect asynchronously. It uses dry runs.
func (w *world) untilRejected(o client.Object, text string) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, harness.Patience,
		true, func(ctx context.Context) (bool, error) {
			last = ""
			if err := w.Client.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
				last = err.Error()
			}
			return (last == "") == (text == "") && strings.Contains(last, text), nil
		})
	if err != nil {
		w.Fatalf("waiting until creating %s gives the error %q: %v; the last error was %q", o.GetName(), text, err, last)
	}
}
