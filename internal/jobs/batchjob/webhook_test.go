package batchjob

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
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
		answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns", Object: runtime.RawExtension{Raw: []byte(text)}}})
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
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "js"},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers", Replicas: 1}}}}
	child := func(name string) builder {
		b := label(newJob(1).unheld(), kueue.QueueLabel, "q")
		b.job.Namespace, b.job.Name = "", name // as in a request
		b.job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(js, jobset.GroupVersion.WithKind("JobSet"))}
		return b
	}
	userQueue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: muster.DefaultQueue, Namespace: "ns"}}
	musterQueue := userQueue.DeepCopy()
	musterQueue.Labels = map[string]string{muster.MadeForLabel: muster.DefaultQueue}
	for name, tc := range map[string]struct {
		job   builder
		queue *kueue.LocalQueue
		held  bool // whether the webhook suspends it
	}{
		"queue name":                            {label(newJob(1).unheld(), kueue.QueueLabel, "q"), nil, true},
		"queue name in an annotation":           {newJob(1).unheld().annotated(kueue.QueueAnnotation, "q"), nil, true},
		"prebuilt Workload":                     {label(newJob(1).unheld(), kueue.PrebuiltWorkloadLabel, "w"), nil, true},
		"no queue name":                         {newJob(1).unheld(), nil, false},
		"no queue name, user's queue default":   {newJob(1).unheld(), userQueue, true},
		"no queue name, Muster's queue default": {newJob(1).unheld(), musterQueue, false},
		"suspended":                             {label(newJob(1), kueue.QueueLabel, "q"), nil, false},
		"another controller's":                  {foreign, nil, false},
		"created by a JobSet":                   {child("js-workers-0"), userQueue, false},
		"owned by a JobSet that did not":        {child("other"), userQueue, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, batchv1.AddToScheme, jobset.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(js.DeepCopy())
			if tc.queue != nil {
				objects.WithObjects([]client.Object{tc.queue.DeepCopy()}...)
			}
			h := &holder{cache: objects.Build(), owners: []jobs.Served{jobsetapi.API}, decoder: admission.NewDecoder(scheme)}
			tc.job.job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
			raw, err := json.Marshal(tc.job.job)
			if err != nil {
				t.Fatal(err)
			}
			answer := h.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns", Object: runtime.RawExtension{Raw: raw}}})
			if !answer.Allowed {
				t.Fatalf("the Job was denied: %+v", answer.Result)
			}
			if held := len(answer.Patches) == 1 && answer.Patches[0].Json() == `{"op":"add","path":"/spec/suspend","value":true}`; held != tc.held || !held && len(answer.Patches) > 0 {
				t.Errorf("patches = %v, want it suspended: %v", answer.Patches, tc.held)
			}
		})
	}
}
