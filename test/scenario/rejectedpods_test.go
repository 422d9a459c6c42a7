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

// TestAGangWithRejectedPodsReleasesItsQuota: the API server takes the first of two pods and refuses the other, whoever
// it is that tells it to. The gang gives its quota back to who waits behind it, says once why, and is tried later; it
// runs when nothing is refused any more. The cases wait side by side.
func TestAGangWithRejectedPodsReleasesItsQuota(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gang func(w *world) client.Object
		// refuse has the second pod refused, in these words, until it is allowed.
		refuse func(w *world, words string) (allow func())
		words  string
	}{
		"by a ResourceQuota":                  {func(w *world) client.Object { return w.gang("gang", "gpu", 2, time.Hour) }, (*world).limitToOnePod, "exceeded quota: one-pod"},
		"by PodSecurity":                      {(*world).hostNetworkGang, (*world).enforcePodSecurity, `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		"by a ValidatingAdmissionPolicy":      {(*world).indexedGang, (*world).rejectOtherRanks, "rank 0 is enough"},
		"by a ValidatingWebhookConfiguration": {(*world).genericGang, (*world).rejectByWebhook, "we have seen enough of these"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gpuQueue("gpu", 2)
			allow := tc.refuse(w, tc.words)
			history := w.Record()
			gang := tc.gang(w)
			if job, ok := gang.(*batchv1.Job); ok {
				w.untilHeld(job)
			}
			w.Create(gang)
			w.UntilWorkloadOf("gang", "runs", runs)
			w.Create(w.bare("next", "gpu", 2))

			released := w.UntilWorkloadOf("gang", "has lost its place", harness.IsEvicted(kueue.WorkloadEvictedByPodsReadyTimeout))
			checkRelease(t, released, tc.words)
			harness.Until(w.World, &corev1.PodList{}, "no pod is left", func(list *corev1.PodList) bool { return len(list.Items) == 0 })
			w.UntilWorkload("next", "goes on", runs)

			// Who mends it need not wait for the back-off.
			allow()
			w.activate(released.Name, false)
			w.UntilWorkload(released.Name, "has no back-off", func(o *kueue.Workload) bool { return o.Status.RequeueState == nil })
			w.activate(released.Name, true)
			w.finish("next")
			ready := w.UntilWorkloadOf("gang", "is ready", func(o *kueue.Workload) bool {
				return runs(o) && meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadPodsReady)
			})
			history.WaitFor(ready)
			if told := history.Conditions("gang", kueue.WorkloadEvicted); len(told) != 3 ||
				!strings.HasPrefix(told[0], "True PodsReadyTimeout: ") || !strings.HasPrefix(told[1], "True Deactivated: ") {
				t.Errorf("it was told of its evictions: %q", told)
			}
		})
	}
}

// checkRelease checks what is told to a gang whose pods were refused.
func checkRelease(t *testing.T, released *kueue.Workload, words string) {
	t.Helper()
	evicted := meta.FindStatusCondition(released.Status.Conditions, kueue.WorkloadEvicted)
	if !strings.HasPrefix(evicted.Message, "The API server refuses its pods: ") || !strings.Contains(evicted.Message, words) {
		t.Errorf("evicted: %s", evicted.Message)
	}
	if !is(released, kueue.WorkloadRequeued, metav1.ConditionFalse, kueue.WorkloadEvictedByPodsReadyTimeout) {
		t.Errorf("it is back in its queue: %+v", released.Status.Conditions)
	}
	want := []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, UnderlyingCause: "PodsRefused", Count: 1}}
	if diff := cmp.Diff(want, released.Status.SchedulingStats.Evictions); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	state := released.Status.RequeueState
	if state == nil || state.RequeueAt == nil || ptr.Deref(state.Count, 0) != 1 {
		t.Fatalf("it is to be tried again: %+v", state)
	}
	if waits := state.RequeueAt.Sub(evicted.LastTransitionTime.Time); waits != time.Minute {
		t.Errorf("it is to be tried again after %s, want a minute", waits)
	}
}

// limitPods has no second pod taken, and no Secret, by which one sees that it is so (as w.Create does): there is no
// first pod yet.
func (w *world) limitToOnePod(string) (allow func()) {
	w.Helper()
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "one-pod", Namespace: w.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1"), corev1.ResourceSecrets: resource.MustParse("0")}}}
	w.Create(limit)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: w.Namespace}}
	return func() { w.Delete(limit); w.untilRejected(secret, "") }
}

// hostedGang is a JobSet of two Jobs of one pod each, of which one wants its node's network.
func (w *world) hostNetworkGang() client.Object {
	js := w.gang("gang", "gpu", 1, time.Hour)
	hosted := js.Spec.ReplicatedJobs[0].DeepCopy()
	hosted.Name, hosted.Template.Spec.Template.Spec.HostNetwork = "hosted", true
	js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *hosted)
	return js
}

// secure has such pods refused by what Kubernetes has built in.
func (w *world) enforcePodSecurity(words string) (allow func()) {
	w.Helper()
	hosted := w.pod("any", nil)
	hosted.Spec.HostNetwork = true
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	w.Patch(namespace, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`)
	w.untilRejected(hosted, words)
	return func() {
		w.Patch(namespace, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": null}}}`)
		w.untilRejected(hosted, "")
	}
}

// rankedGang is a Job whose pods have ranks.
func (w *world) indexedGang() client.Object {
	job := w.batchJob("gang", "gpu", 2, time.Hour)
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	return job
}

// oneRank has pods of every rank but the first refused by a policy.
func (w *world) rejectOtherRanks(words string) (allow func()) {
	w.Helper()
	const rank = "object.metadata.?labels[?'" + batchv1.JobCompletionIndexAnnotation + "'].orValue('0')"
	policy := &registration.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: registration.ValidatingAdmissionPolicySpec{
		MatchConstraints: &registration.MatchResources{
			NamespaceSelector: w.namespaceSelector(),
			ResourceRules:     []registration.NamedRuleWithOperations{{RuleWithOperations: creationsOfPods}},
		},
		Validations: []registration.Validation{{Expression: rank + " == '0'", Message: words}},
	}}
	binding := &registration.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: registration.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []registration.ValidationAction{registration.Deny}}}
	second := w.pod("any", map[string]string{batchv1.JobCompletionIndexAnnotation: "1"})
	w.Enforce(func() { w.untilRejected(second, words) }, policy, binding)
	return func() { w.Delete(binding); w.untilRejected(second, "") }
}

// genericGang is a GenericJob, whose pods Muster makes itself.
func (w *world) genericGang() client.Object {
	return &tensorstack.GenericJob{
		ObjectMeta: metav1.ObjectMeta{Name: "gang", Namespace: w.Namespace, Labels: map[string]string{kueue.QueueLabel: "gpu"}},
		Spec: tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{{
			Type: "worker", Replicas: ptr.To[int32](2), Template: w.batchJob("", "", 2, time.Hour).Spec.Template}}},
	}
}

// ask has the API server ask a webhook, which refuses pods whose names end in 1.
func (w *world) rejectByWebhook(words string) (allow func()) {
	w.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: !strings.HasSuffix(review.Request.Name, "1"),
			Result: &metav1.Status{Message: words}}
		_ = json.NewEncoder(out).Encode(review) // who asked may have gone
	}))
	w.Cleanup(server.Close)
	webhook := &registration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Webhooks: []registration.ValidatingWebhook{{
		Name: "pods.example.com",
		ClientConfig: registration.WebhookClientConfig{URL: &server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		Rules:             []registration.RuleWithOperations{creationsOfPods},
		NamespaceSelector: w.namespaceSelector(),
		FailurePolicy:     ptr.To(registration.Fail), SideEffects: ptr.To(registration.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}}
	second := w.pod("gang-1", nil)
	w.Enforce(func() { w.untilRejected(second, words) }, webhook)
	return func() { w.Delete(webhook); w.untilRejected(second, "") }
}

// creationsOfPods are what policies and webhooks here have a say in.
var creationsOfPods = registration.RuleWithOperations{
	Operations: []registration.OperationType{registration.Create},
	Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
}

// itself selects the world's namespace.
func (w *world) namespaceSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}}
}

// pod is like those of the gangs.
func (w *world) pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: labels}, Spec: w.batchJob("", "", 1, 0).Spec.Template.Spec}
}

// untilRefused waits until the API server refuses such an object, in these words, or, where there are none, takes it:
// it hears of rules on its own time. Nothing is made.
func (w *world) untilRejected(o client.Object, words string) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, harness.Patience, true, func(ctx context.Context) (bool, error) {
		last = ""
		if err := w.Client.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
			last = err.Error()
		}
		return (last == "") == (words == "") && strings.Contains(last, words), nil
	})
	if err != nil {
		w.Fatalf("waiting until %s is refused with %q: %v; the last one was told %q", o.GetName(), words, err, last)
	}
}
