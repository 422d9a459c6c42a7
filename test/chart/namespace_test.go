package chart

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestNamespacedRoleMayWriteOnlyInItsNamespace checks the rights of an operator with monitorNamespace, and that they
// are enough to run a job of each API: the test fails if the API server refuses the operator a request.
func TestNamespacedRoleMayWriteOnlyInItsNamespace(t *testing.T) {
	h, w := newHelm(t), harness.New(t)
	h.install(values{"monitorNamespace": w.Namespace})
	cluster := testcluster.Get(t)
	operator.StartAs(t, "../../bin/muster-operator", cluster, account, "--leader-election-namespace", namespace,
		"--namespace", w.Namespace).AwaitReady(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("20"), corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("4Gi")})
	for _, job := range oneOfEach(w) {
		w.Create(job)
		w.UntilWorkloadOf(job.GetName(), "runs", harness.Runs)
	}

	for _, c := range []struct {
		verb, group, resource string
		here, elsewhere       bool
	}{
		{"create", "", "pods", true, false},
		{"list", "", "pods", true, true}, // all pods count against the capacity of nodes
		{"create", "", "secrets", true, false},
		{"get", "", "secrets", true, false},
		{"patch", "", "serviceaccounts", true, false},
		{"patch", "batch", "jobs", true, false},
		{"patch", "kueue.x-k8s.io", "workloads", true, false},
		{"create", "events.k8s.io", "events", true, true},
	} {
		for in, want := range map[string]bool{w.Namespace: c.here, "default": c.elsewhere} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: in}}}
			if err := cluster.Client.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed != want {
				t.Errorf("the operator may %s %s in %s = %t, want %t", c.verb, c.resource, in, review.Status.Allowed, want)
			}
		}
	}
}

// oneOfEach returns a queued job of each API, with pods that run until the test ends.
func oneOfEach(w *harness.World) []client.Object {
	queued := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{kueue.QueueLabel: "q"}}
	}
	pods := w.Job("any", "q", 1).Spec
	pods.Suspend = nil
	set := &jobset.JobSet{ObjectMeta: queued("a-jobset")}
	set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "w", Replicas: 1,
		Template: batchv1.JobTemplateSpec{Spec: pods}}}
	generic := &tensorstack.GenericJob{ObjectMeta: queued("a-genericjob")}
	generic.Spec.ReplicaSpecs = []tensorstack.ReplicaSpec{{Type: "worker", Replicas: ptr.To[int32](1),
		Template: pods.Template}}
	training := &breezeml.TrainingJob{ObjectMeta: queued("a-trainingjob")}
	training.Spec.MinSize, training.Spec.MaxSize = ptr.To[int32](1), ptr.To[int32](1)
	training.Spec.ReplicaSpecs.Template = pods.Template
	vc := &volcano.Job{ObjectMeta: queued("a-vcjob")}
	vc.Spec.Tasks = []volcano.TaskSpec{{Name: "t", Replicas: 1, Template: pods.Template}}
	limits := &lattice.ResourceQuantity{CPU: ptr.To(resource.MustParse("100m")),
		Memory: ptr.To(resource.MustParse("64Mi"))}
	container := lattice.ContainerSpec{SidecarContainer: lattice.SidecarContainer{Image: "local",
		Resources: &lattice.ResourceRequirements{Limits: limits}}}
	compiled := &lattice.LatticeJob{ObjectMeta: queued("a-latticejob"), Spec: lattice.LatticeJobSpec{Queue: "q",
		Tasks: map[string]lattice.JobTaskSpec{
			"worker": {Workload: lattice.WorkloadSpec{Containers: map[string]lattice.ContainerSpec{"main": container}}}}}}
	return []client.Object{w.Job("a-job", "q", 2), set, generic, training, vc, compiled}
}
