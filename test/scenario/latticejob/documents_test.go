package latticejob

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// TestTheDocumentedPipelineCompletes: unmodified. It waits for a kind that is not served, and goes on when that comes.
func TestTheDocumentedPipelineCompletes(t *testing.T) {
	w := newWorld(t).in("batch")
	w.queue("default", corev1.ResourcePods, 10)
	w.podsLast()
	w.serve("cilium.io", "v1alpha1", "TracingPolicyNamespaced", "tracingpoliciesnamespaced")
	job := w.example("data-pipeline.yaml")
	w.UntilLatticeJob(job.Name, "says what it needs", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.Contains(job.Status.Message, "does not serve ExternalSecret (external-secrets.io)")
	})
	w.UntilEvent(job.Name, "MissingKind")
	if w.VCJob(job.Name) != nil {
		t.Error("its VCJob was made before what it needs")
	}
	w.serve("external-secrets.io", "v1", "ExternalSecret", "externalsecrets")
	running := w.UntilPhase(job.Name, lattice.Running)
	if running.Status.Message != lattice.SubmittedMessage || ptr.Deref(running.Status.ObservedGeneration, 0) != 1 {
		t.Errorf("status %+v", running.Status)
	}

	vcjob := w.VCJob(job.Name)
	if tasks := vcjob.Spec.Tasks; len(tasks) != 2 || tasks[0].Name != "master" || tasks[1].Name != "worker" ||
		tasks[1].Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		t.Errorf("tasks %+v", tasks)
	}
	if vcjob.Spec.SchedulerName != "volcano" || vcjob.OwnerReferences[0].Kind != "LatticeJob" || vcjob.Spec.MinAvailable != 3 {
		t.Errorf("scheduler %q, owners %v, minAvailable %d", vcjob.Spec.SchedulerName, vcjob.OwnerReferences, vcjob.Spec.MinAvailable)
	}
	for _, task := range []string{"master", "worker"} {
		w.external("cilium.io/v1alpha1", "TracingPolicyNamespaced", "allow-binaries-data-pipeline-"+task)
		secret := w.external("external-secrets.io/v1", "ExternalSecret", "data-pipeline-"+task+"-ghcr-creds")
		if store, _, _ := unstructured.NestedString(secret.Object, "spec", "secretStoreRef", "name"); store != "vault-ci" {
			t.Errorf("store %q", store)
		}
	}

	// A change of what runs is taken, told, and ignored.
	w.Change(job, func() { job.Spec.MaxRetry = ptr.To[int32](7) })
	w.UntilEvent(job.Name, "SpecChangeIgnored")
	if after := w.VCJob(job.Name); after.Generation != vcjob.Generation {
		t.Error("the VCJob was changed")
	}
	for _, pod := range []string{"data-pipeline-master-0", "data-pipeline-worker-0", "data-pipeline-worker-1"} {
		w.end(pod)
	}
	over := w.UntilPhase(job.Name, lattice.Succeeded)
	if over.Status.Message != lattice.SucceededMessage || ptr.Deref(over.Status.ObservedGeneration, 0) != 2 {
		t.Errorf("status %+v", over.Status)
	}
}

// podsLast has pods that are made from now on run until somebody ends them, though their job, which is a document's,
// does not say so.
func (w *world) podsLast() {
	w.Helper()
	w.Follow(&corev1.PodList{}, func(event watch.Event) {
		if event.Type != watch.Added {
			return
		}
		lasts := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"muster.dev/sim-duration": "1h"}}}`))
		if err := w.Client.Patch(w.Context(), event.Object.(*corev1.Pod), lasts); client.IgnoreNotFound(err) != nil && w.Context().Err() == nil {
			w.Error(err)
		}
	}, &sync.Mutex{})
}

// TestTheDocumentedFineTuningRunsOnWholeGPUs: unmodified, on machines that share no GPUs. It says what it waits for.
func TestTheDocumentedFineTuningRunsOnWholeGPUs(t *testing.T) {
	w := newWorld(t).in("ml")
	quota := w.queue("gpu-queue", "nvidia.com/gpu", 8)
	w.Shared(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high-priority"}, Value: 1000})
	var nodes corev1.NodeList
	if err := w.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		w.Patch(&nodes.Items[i], `{"metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}}}`)
	}
	w.volume("data", "", "1Ti")
	w.claim("vol-ml-training-data", "", "1Ti")
	w.volume("checkpoints", "fast-nvme", "500Gi")

	job := w.example("llm-finetune.yaml")
	w.UntilLatticeJob(job.Name, "waits for quota, and says why", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.Contains(job.Status.Message, "Waiting for quota: ") && strings.Contains(job.Status.Message, "nvidia.com/gpu")
	})
	w.Change(quota, func() { quota.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Set(12) })
	w.UntilPhase(job.Name, lattice.Running)
	w.UntilPods("it runs on three machines with GPUs of the model", func(pods map[string]corev1.Pod) bool {
		for _, name := range []string{"llm-finetune-trainer-0", "llm-finetune-trainer-1", "llm-finetune-trainer-2"} {
			pod := pods[name]
			if pod.Spec.NodeName == "" || pod.Spec.NodeSelector["nvidia.com/gpu.product"] != "NVIDIA-A100-SXM4-80GB" ||
				pod.Spec.Containers[0].Resources.Limits.Name("nvidia.com/gpu", "").Value() != 4 || pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
				return false
			}
		}
		return true
	})
	for _, pod := range []string{"llm-finetune-trainer-0", "llm-finetune-trainer-1", "llm-finetune-trainer-2"} {
		w.end(pod)
	}
	w.UntilPhase(job.Name, lattice.Succeeded)

	// What it has learnt outlives it.
	w.Delete(job)
	w.UntilPods("its pods are gone", func(pods map[string]corev1.Pod) bool { return len(pods) == 0 })
	checkpoints := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "vol-ml-checkpoints", Namespace: "ml"}}
	w.Get(checkpoints)
	if len(checkpoints.OwnerReferences) != 0 || checkpoints.DeletionTimestamp != nil {
		t.Errorf("the checkpoints go with the job: %+v", checkpoints.ObjectMeta)
	}
}
