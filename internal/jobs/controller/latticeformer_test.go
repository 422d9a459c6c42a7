package controller_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

func changeContainer(change func(*lattice.ContainerSpec)) func(*lattice.JobTaskSpec) {
	return func(task *lattice.JobTaskSpec) {
		container := task.Workload.Containers["main"]
		change(&container)
		task.Workload.Containers["main"] = container
	}
}

// specChanges are changes of the task t after which it needs fewer objects than before.
var specChanges = map[string]func(*lattice.JobTaskSpec){
	"without a command": changeContainer(func(c *lattice.ContainerSpec) { c.Command = nil }),
	"with any binary": changeContainer(func(c *lattice.ContainerSpec) {
		c.Security = &lattice.SecurityContext{AllowedBinaries: []string{"*"}}
	}),
	"without a service":  removeService,
	"with more replicas": grow,
}

// TestNothingOfAnEarlierSpecActsOnTheJob: a TracingPolicy of an earlier spec would kill the entrypoints of all pods.
// The final objects are those of a job that was created with the final spec, whether the job waits with its VCJob, or
// without one because it could not be created.
func TestNothingOfAnEarlierSpecActsOnTheJob(t *testing.T) {
	waits := setVCJobPhase(volcano.Pending, volcano.WaitingForQuota)
	for name, change := range specChanges {
		for where, steps := range map[string][]func(*latticeWorld){
			"while it waits":   {waits, changeTask(change)},
			"without a VCJob":  {waits, func(w *latticeWorld) { w.deleteVCJob(); changeTask(change)(w) }},
			"before it is run": {changeTask(change)},
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				created := newLatticeWorld(t, fault{}, nil)
				created.edit(func(job *lattice.LatticeJob) {
					task := job.Spec.Tasks["t"]
					change(&task)
					job.Spec.Tasks["t"] = task
				})
				got := newLatticeWorld(t, fault{}, steps).run()
				if diff := cmp.Diff(created.run().ownObjects(), got.ownObjects()); diff != "" {
					t.Errorf("the final objects differ (-created with the spec +got):\n%s", diff)
				}
			})
		}
	}
}

// TestTasksThatAreGoneLeaveNoPolicy: they may have the name of another job's task later.
func TestTasksThatAreGoneLeaveNoPolicy(t *testing.T) {
	w := newLatticeWorld(t, fault{}, []func(*latticeWorld){func(w *latticeWorld) {
		w.edit(func(job *lattice.LatticeJob) {
			job.Spec.Tasks = map[string]lattice.JobTaskSpec{"other": job.Spec.Tasks["t"]}
			job.Generation++
		})
	}}).run()
	objects := w.ownObjects()
	for what, want := range map[string]bool{
		"TracingPolicyNamespaced allow-binaries-job-t": false, "LatticeMeshMember job-t": false,
		"TracingPolicyNamespaced allow-binaries-job-other": true, "LatticeMeshMember job-other": true,
	} {
		if _, there := objects[what]; there != want {
			t.Errorf("%s exists: %v, want %v", what, there, want)
		}
	}
}

// ownObjects returns the objects but for the LatticeJob, without the fields that tell its generations apart.
func (l *latticeWorld) ownObjects() map[string]any {
	out := l.objects()
	delete(out, "LatticeJob job")
	for _, object := range out {
		o := object.(client.Object)
		o.SetGeneration(0)
		o.SetCreationTimestamp(metav1.Time{})
		annotations := o.GetAnnotations()
		delete(annotations, "lattice.dev/generation")
		o.SetAnnotations(annotations)
		if content, ok := object.(interface{ UnstructuredContent() map[string]any }); ok {
			delete(content.UnstructuredContent(), "status")
		}
	}
	return out
}

// TestTasksThatWereNeverRunLeaveNothingInTheGraph: the VCJob of the earlier spec, which alone has the names of its
// tasks, was refused, or is gone.
func TestTasksThatWereNeverRunLeaveNothingInTheGraph(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "batch.volcano.sh", Resource: "jobs"}, "job",
		errors.New("no"))
	w := newLatticeWorld(t, fault{"create Job job #1", false, refused}, nil)
	if _, err := w.reconciler.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "job"}}); err != nil || !w.faultFired {
		t.Fatalf("the VCJob was not refused (%v)", err)
	}
	w.edit(func(job *lattice.LatticeJob) {
		job.Spec.Tasks = map[string]lattice.JobTaskSpec{"other": job.Spec.Tasks["t"]}
		job.Generation++
	})
	w.steps = []func(*latticeWorld){setVCJobPhase(volcano.Running, "")}
	objects := w.run().ownObjects()
	for what, want := range map[string]bool{
		"TracingPolicyNamespaced allow-binaries-job-t": false, "LatticeMeshMember job-t": false,
		"TracingPolicyNamespaced allow-binaries-job-other": true, "LatticeMeshMember job-other": true,
	} {
		if _, there := objects[what]; there != want {
			t.Errorf("%s exists: %v, want %v", what, there, want)
		}
	}
}
