package operators

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestVolcanoIsDetected: an operator that runs VCJobs ends when Volcano is installed over Muster's definitions, and
// says why; the next one leaves VCJobs alone and hands LatticeJobs over. What ran goes on.
func TestVolcanoIsDetected(t *testing.T) {
	w := newWorld(t)
	w.podQueue(10)
	first := w.operate()
	w.Create(w.vcjob("before"))
	w.UntilOnlyPods("before-worker-0")

	w.Shared(volcanoPodGroups())
	if said := first.AwaitEnd(t); !strings.Contains(said,
		"the scheduler Volcano was installed and runs VCJobs from now on") {
		t.Errorf("it says %q", said)
	}
	everywhere := *w.World
	everywhere.Namespace = metav1.NamespaceDefault // there is told what is about the whole cluster
	everywhere.UntilEvent("jobs.batch.volcano.sh", "VolcanoInstalled")

	w.operate()
	w.Create(w.vcjob("theirs"), w.latticejob("after", "volcanos-own"))
	harness.UntilOne(w.World, &lattice.LatticeJobList{}, "after", "is handed over", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Running &&
			job.Status.Message == lattice.SubmittedMessage+
				". Its queue is not managed by Muster, so Muster's quota does not cover it"
	})
	theirs := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: w.Namespace}}
	w.Get(theirs)
	if theirs.Status.State.Phase != "" {
		t.Errorf("Muster runs a VCJob of Volcano's: %+v", theirs.Status)
	}
	w.UntilOnlyPods("before-worker-0")
}

// vcjob is a VCJob of one pod, which nobody schedules.
func (w *world) vcjob(name string) *volcano.Job {
	task := volcano.TaskSpec{Name: "worker", Replicas: 1}
	task.Template.Spec = corev1.PodSpec{SchedulerName: "nobody",
		Containers: []corev1.Container{{Name: "main", Image: "example.com/worker:1"}}}
	return &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: volcano.JobSpec{Queue: "q", Tasks: []volcano.TaskSpec{task}}}
}

// latticejob is a LatticeJob of one pod in the queue.
func (w *world) latticejob(name, queue string) *lattice.LatticeJob {
	limits := &lattice.ResourceQuantity{CPU: ptr.To(resource.MustParse("100m")),
		Memory: ptr.To(resource.MustParse("64Mi"))}
	container := lattice.ContainerSpec{SidecarContainer: lattice.SidecarContainer{Image: "example.com/worker:1",
		Resources: &lattice.ResourceRequirements{Limits: limits}}}
	return &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: lattice.LatticeJobSpec{Queue: queue,
			Tasks: map[string]lattice.JobTaskSpec{
				"worker": {Workload: lattice.WorkloadSpec{Containers: map[string]lattice.ContainerSpec{"main": container}}}}}}
}

// volcanoPodGroups is the definition by which Volcano is known.
func volcanoPodGroups() *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion("apiextensions.k8s.io/v1")
	out.SetKind("CustomResourceDefinition")
	out.SetName("podgroups.scheduling.volcano.sh")
	out.Object["spec"] = map[string]any{
		"group": "scheduling.volcano.sh", "scope": "Namespaced",
		"names": map[string]any{"kind": "PodGroup", "plural": "podgroups"},
		"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
				"x-kubernetes-preserve-unknown-fields": true}}}},
	}
	return out
}
