package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// addToleration acts as a mutating admission policy that adds a toleration to Workloads.
func addToleration(object client.Object) {
	if w, is := object.(*kueue.Workload); is {
		for i := range w.Spec.PodSets {
			spec := &w.Spec.PodSets[i].Template.Spec
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists})
		}
	}
}

// TestBatchJobRunsThoughAPolicyMutatesItsWorkload: the Workload is not replaced for differing from its job, since a new
// one would be mutated in the same way.
func TestBatchJobRunsThoughAPolicyMutatesItsWorkload(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.fate, w.onCreate = running, addToleration
	w.settle()
	if job := w.batchJob(); job.Status.Active != 2 ||
		w.created["Workload "+list[kueue.WorkloadList](w.world).Items[0].Name] != 1 {
		t.Errorf("the Job does not run with its first Workload: status %+v, writes %v", job.Status, w.writes)
	}
}

// TestBatchJobThatAsksForMoreIsQueuedAgain, also if its Workload was mutated and never requested the same, and whatever
// digest a user copied onto a prebuilt Workload.
func TestBatchJobThatAsksForMoreIsQueuedAgain(t *testing.T) {
	more := corev1.ResourceList{"cpu": resource.MustParse("1")}
	enlarge := func(w *batchWorld) {
		job := w.batchJob()
		job.Spec.Suspend = ptr.To(true)
		job.Spec.Template.Spec.Containers[0].Resources.Requests = more
		w.changes++
		if err := w.api.Update(w.t.Context(), job); err != nil {
			w.t.Fatal(err)
		}
	}
	t.Run("Workload mutated by a policy", func(t *testing.T) {
		w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
		w.fate, w.onCreate = running, addToleration
		w.settle()
		enlarge(w)
		w.settle()
		wl := list[kueue.WorkloadList](w.world).Items[0]
		if requests := wl.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests; len(requests) == 0 ||
			w.batchJob().Status.Active != 2 {
			t.Errorf("the Job has quota for %v and the status %+v, want quota for its new requests and 2 active pods", requests,
				w.batchJob().Status)
		}
	})
	t.Run("digest copied onto a prebuilt Workload", func(t *testing.T) {
		forged := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
		enlarge(forged)
		forged.settle()
		job := newBatchJob("cq", true)
		job.Labels[kueue.PrebuiltWorkloadLabel] = "prebuilt"
		w := newBatchWorld(t, fault{}, job, 0)
		w.fate = running
		w.put(&kueue.Workload{
			ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns",
				Annotations: list[kueue.WorkloadList](forged.world).Items[0].Annotations},
			Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: 2,
				Template: newBatchJob("", true).Spec.Template}}}})
		w.settle()
		enlarge(w)
		w.settle()
		if job := w.batchJob(); list[kueue.WorkloadList](w.world).Items[0].Annotations[muster.AskedAnnotation] == "" ||
			job.Status.Active > 0 || !*job.Spec.Suspend {
			t.Errorf("the Job runs without quota for its new requests, or its Workload has lost the digest: %+v", job.Status)
		}
	})
}

// TestLatticeJobRunsThoughAPolicyMutatesItsWorkload checks a LatticeJob whose VCJob Volcano runs.
func TestLatticeJobRunsThoughAPolicyMutatesItsWorkload(t *testing.T) {
	w := newExternalWorld(t)
	if err := w.api.Create(t.Context(), flavor()); err != nil {
		t.Fatal(err)
	}
	w.setVolcanoServed(true)
	w.edit(func(job *lattice.LatticeJob) { job.Spec.Queue = "cq" })
	w.settle()
	mutated := w.workload()
	addToleration(mutated)
	if err := w.api.Update(t.Context(), mutated); err != nil {
		t.Fatal(err)
	}
	w.admit()
	w.settle()
	if len(list[volcano.JobList](w.world).Items) != 1 {
		t.Errorf("no VCJob was created; the LatticeJob is %s: %s", w.latticeJob().Status.Phase, w.latticeJob().Status.Message)
	}
}
