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
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestTheDocumentedPipelineCompletes: the documented data pipeline runs unmodified. It stays pending while a kind that
// it needs is not served, and starts when the kind is. A change of its spec while it runs is reported by an event and
// otherwise ignored.
func TestTheDocumentedPipelineCompletes(t *testing.T) {
	w := newWorld(t).in("batch")
	w.queue("default", corev1.ResourcePods, 10)
	w.keepPodsRunning()
	w.serve("cilium.io", "v1alpha1", "TracingPolicyNamespaced", "tracingpoliciesnamespaced")
	job := w.example("data-pipeline.yaml")
	w.UntilLatticeJob(job.Name, "reports the missing kind", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending &&
			strings.Contains(job.Status.Message, "does not serve ExternalSecret (external-secrets.io)")
	})
	w.UntilEvent(job.Name, "MissingKind")
	if w.VCJob(job.Name) != nil {
		t.Error("the VCJob was created before the objects that it needs")
	}
	w.serve("external-secrets.io", "v1", "ExternalSecret", "externalsecrets")
	running := w.UntilPhase(job.Name, lattice.Running)
	if running.Status.Message != lattice.SubmittedMessage || ptr.Deref(running.Status.ObservedGeneration, 0) != 1 {
		t.Errorf("status = %+v, want the message %q and observedGeneration 1", running.Status, lattice.SubmittedMessage)
	}

	vcjob := w.VCJob(job.Name)
	if tasks := vcjob.Spec.Tasks; len(tasks) != 2 || tasks[0].Name != "master" || tasks[1].Name != "worker" ||
		tasks[1].Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		t.Errorf("tasks = %+v, want master and worker, the latter with restartPolicy OnFailure", tasks)
	}
	if vcjob.Spec.SchedulerName != "volcano" || vcjob.OwnerReferences[0].Kind != "LatticeJob" ||
		vcjob.Spec.MinAvailable != 3 {
		t.Errorf("schedulerName = %q, owners = %v, minAvailable = %d, want volcano, the LatticeJob and 3",
			vcjob.Spec.SchedulerName, vcjob.OwnerReferences, vcjob.Spec.MinAvailable)
	}
	for _, task := range []string{"master", "worker"} {
		w.external("cilium.io/v1alpha1", "TracingPolicyNamespaced", "allow-binaries-data-pipeline-"+task)
		secret := w.external("external-secrets.io/v1", "ExternalSecret", "data-pipeline-"+task+"-ghcr-creds")
		if store, _, _ := unstructured.NestedString(secret.Object, "spec", "secretStoreRef", "name"); store != "vault-ci" {
			t.Errorf("secret store of task %s = %q, want vault-ci", task, store)
		}
	}

	// A change of a running job's spec is accepted, reported and ignored.
	w.Change(job, func() { job.Spec.MaxRetry = ptr.To[int32](7) })
	w.UntilEvent(job.Name, "SpecChangeIgnored")
	if after := w.VCJob(job.Name); after.Generation != vcjob.Generation {
		t.Errorf("generation of the VCJob = %d, want %d: the change is ignored", after.Generation, vcjob.Generation)
	}
	for _, pod := range []string{"data-pipeline-master-0", "data-pipeline-worker-0", "data-pipeline-worker-1"} {
		w.end(pod)
	}
	over := w.UntilPhase(job.Name, lattice.Succeeded)
	if over.Status.Message != lattice.SucceededMessage || ptr.Deref(over.Status.ObservedGeneration, 0) != 2 {
		t.Errorf("status = %+v, want the message %q and observedGeneration 2", over.Status, lattice.SucceededMessage)
	}
}

// keepPodsRunning makes pods that are created from now on run until the test ends them: the jobs of examples do not
// have the annotation for it.
func (w *world) keepPodsRunning() {
	w.Helper()
	harness.Follow(w.World, &corev1.PodList{}, func(event watch.Event) {
		if event.Type != watch.Added {
			return
		}
		patch := client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata": {"annotations": {"muster.dev/sim-duration": "1h"}}}`))
		if err := w.Client.Patch(w.Context(), event.Object.(*corev1.Pod), patch); client.IgnoreNotFound(err) != nil &&
			w.Context().Err() == nil {
			w.Error(err)
		}
	}, &sync.Mutex{})
}

// TestTheDocumentedFineTuningRunsOnWholeGPUs: the documented fine-tuning job runs unmodified on nodes without shared
// GPUs. While it waits for quota its message says so, and its checkpoints remain when it is deleted.
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
	w.UntilLatticeJob(job.Name, "reports that it waits for quota of GPUs", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.Contains(job.Status.Message, "Waiting for quota: ") &&
			strings.Contains(job.Status.Message, "nvidia.com/gpu")
	})
	w.Change(quota, func() { quota.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Set(12) })
	w.UntilPhase(job.Name, lattice.Running)
	w.UntilPods("the three pods have nodes and four GPUs of the model each", func(pods map[string]corev1.Pod) bool {
		for _, name := range []string{"llm-finetune-trainer-0", "llm-finetune-trainer-1", "llm-finetune-trainer-2"} {
			pod := pods[name]
			if pod.Spec.NodeName == "" || pod.Spec.NodeSelector["nvidia.com/gpu.product"] != "NVIDIA-A100-SXM4-80GB" ||
				pod.Spec.Containers[0].Resources.Limits.Name("nvidia.com/gpu", "").Value() != 4 ||
				pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
				return false
			}
		}
		return true
	})
	for _, pod := range []string{"llm-finetune-trainer-0", "llm-finetune-trainer-1", "llm-finetune-trainer-2"} {
		w.end(pod)
	}
	w.UntilPhase(job.Name, lattice.Succeeded)

	// The checkpoints outlive the job.
	w.Delete(job)
	w.UntilPods("the pods are deleted", func(pods map[string]corev1.Pod) bool { return len(pods) == 0 })
	checkpoints := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "vol-ml-checkpoints",
		Namespace: "ml"}}
	w.Get(checkpoints)
	if len(checkpoints.OwnerReferences) != 0 || checkpoints.DeletionTimestamp != nil {
		t.Errorf("claim of the checkpoints = %+v, want neither owners nor a deletion", checkpoints.ObjectMeta)
	}
}
