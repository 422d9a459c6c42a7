package batchjob

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestWebhookDeniesNoJob, neither if queues cannot be read, as in a namespace that the operator's cache does not
// contain, nor if the request cannot be decoded.
func TestWebhookDeniesNoJob(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	failing := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("unable to get: ns/default because of unknown namespace for the cache")
		}})
	h := &holder{cache: failing, decoder: admission.NewDecoder(scheme)}
	for name, text := range map[string]string{
		"with a queue":    `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}}`,
		"without a queue": `{"apiVersion": "batch/v1", "kind": "Job"}`,
		"invalid Job":     `{"apiVersion": "batch/v1", "kind": "Job", "spec": 1}`,
		"invalid JSON":    `{`,
		"unknown version": `{"apiVersion": "batch/v9", "kind": "Job"}`,
	} {
		answer := h.Handle(t.Context(),
			admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns",
				Object: runtime.RawExtension{Raw: []byte(text)}}})
		if !answer.Allowed || len(answer.Patches) > 0 {
			t.Errorf("%s: response %+v, want it allowed and unchanged", name, answer)
		}
	}
}

func TestWebhookHoldsJobsWithAQueue(t *testing.T) {
	label := func(b builder, key, value string) builder {
		b.job.Labels = map[string]string{key: value}
		return b
	}
	foreign := label(newJob(1).unheld(), kueue.QueueLabel, "q")
	foreign.job.Spec.ManagedBy = ptr.To("example.com/other")
	foreignSuspended := label(newJob(1), kueue.QueueLabel, "q")
	foreignSuspended.job.Spec.ManagedBy = ptr.To("example.com/other")
	ofJobSet := label(newJob(1).unheld(), kueue.QueueLabel, "q")
	ofJobSet.job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet",
		Name: "j", UID: "js", Controller: ptr.To(true)}}
	userQueue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: muster.DefaultQueue, Namespace: "ns"}}
	musterQueue := userQueue.DeepCopy()
	musterQueue.Labels = map[string]string{muster.MadeForLabel: muster.DefaultQueue}
	for name, tc := range map[string]struct {
		job   builder
		queue *kueue.LocalQueue
		held  bool // whether the webhook suspends and marks it
	}{
		"queue name":                             {label(newJob(1).unheld(), kueue.QueueLabel, "q"), nil, true},
		"queue name in an annotation":            {newJob(1).unheld().annotated(kueue.QueueAnnotation, "q"), nil, true},
		"prebuilt Workload":                      {label(newJob(1).unheld(), kueue.PrebuiltWorkloadLabel, "w"), nil, true},
		"no queue name":                          {newJob(1).unheld(), nil, false},
		"no queue name, user's queue default":    {newJob(1).unheld(), userQueue, true},
		"no queue name, Muster's queue default":  {newJob(1).unheld(), musterQueue, false},
		"suspended":                              {label(newJob(1), kueue.QueueLabel, "q"), nil, true},
		"suspended, queue name in an annotation": {newJob(1).annotated(kueue.QueueAnnotation, "q"), nil, true},
		"suspended, user's queue default":        {newJob(1), userQueue, true},
		"suspended, Muster's queue default":      {newJob(1), musterQueue, false},
		"suspended, no queue":                    {newJob(1), nil, false},
		"suspended, another controller's":        {foreignSuspended, nil, false},
		"another controller's":                   {foreign, nil, false},
		"controlled by a JobSet":                 {ofJobSet, nil, true},
		"with annotations":                       {newJob(1).unheld().annotated("a/b", "c"), userQueue, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, batchv1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			objects := fake.NewClientBuilder().WithScheme(scheme)
			if tc.queue != nil {
				objects.WithObjects([]client.Object{tc.queue.DeepCopy()}...)
			}
			h := &holder{cache: objects.Build(), operator: "operator", decoder: admission.NewDecoder(scheme)}
			tc.job.unmarked().job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
			raw, err := json.Marshal(tc.job.job)
			if err != nil {
				t.Fatal(err)
			}
			ask := func(user string) *batchv1.Job {
				answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Namespace: "ns", Object: runtime.RawExtension{Raw: raw}, UserInfo: authenticationv1.UserInfo{Username: user}}})
				if !answer.Allowed {
					t.Fatalf("the Job was denied: %+v", answer.Result)
				}
				return patched(t, raw, answer)
			}
			if got := ask("ada"); suspended(got) != (tc.held || suspended(tc.job.job)) ||
				(got.Annotations[muster.QueuedAnnotation] == muster.QueuedItself) != tc.held ||
				len(got.Annotations) < len(tc.job.job.Annotations) {
				t.Errorf("of a user: suspended: %t, annotations %v, want it held and marked: %t", suspended(got),
					got.Annotations, tc.held)
			}
			if got := ask("operator"); suspended(got) != suspended(tc.job.job) {
				t.Error("a Job that the operator creates is held")
			}
		})
	}
}

// patched returns the Job of the request as the API server stores it after the answer.
func patched(t *testing.T, raw []byte, answer admission.Response) *batchv1.Job {
	t.Helper()
	text, err := json.Marshal(answer.Patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Patches) > 0 {
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatal(err)
		}
	}
	var job batchv1.Job
	if err := json.Unmarshal(raw, &job); err != nil {
		t.Fatal(err)
	}
	return &job
}
