package external

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// installVolcano installs the CRD of VCJobs.
func (w *world) installVolcano() { w.installCRD("batch.volcano.sh", "v1alpha1", "Job", "jobs") }

// TestJobsWaitUntilVolcanoIsInstalled: a LatticeJob reports that the kind of VCJobs is missing, gets no Workload, and
// runs once the CRD is installed. This test must run first, because the CRD remains.
func TestJobsWaitUntilVolcanoIsInstalled(t *testing.T) {
	w := newWorld(t)
	w.queue("4")
	w.job("early", "q", 2)
	w.UntilLatticeJob("early", "is pending because VCJobs are not served", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending &&
			job.Status.Message == "The cluster does not serve Job (batch.volcano.sh), which the job needs: it continues once that is installed"
	})
	w.UntilEvent("early", "MissingKind")
	var workloads kueue.WorkloadList
	if err := w.Client.List(t.Context(), &workloads, client.InNamespace(w.Namespace)); err != nil ||
		len(workloads.Items) > 0 {
		t.Errorf("Workloads = %v, error %v, want none while the kind is missing", workloads.Items, err)
	}
	w.installVolcano()
	w.UntilPhase("early", lattice.Running)
	w.setPhase("early", volcano.Completed)
	w.UntilPhase("early", lattice.Succeeded)
}

// TestAMusterQueueAdmitsAJobBeforeItsVCJobIsCreated: the VCJob of a LatticeJob in a LocalQueue is created when the job
// is admitted and deleted when it is evicted. The job releases its quota when the VCJob ends.
func TestAMusterQueueAdmitsAJobBeforeItsVCJobIsCreated(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	w.queue("2")
	w.job("first", "q", 2)
	first := w.UntilPhase("first", lattice.Running)
	if first.Status.Message != lattice.SubmittedMessage {
		t.Errorf("LatticeJob first has the message %q, want %q", first.Status.Message, lattice.SubmittedMessage)
	}
	w.UntilWorkloadOf("first", "is admitted", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.job("second", "q", 1)
	w.UntilLatticeJob("second", "waits for quota", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.HasPrefix(job.Status.Message, "Waiting for quota: ")
	})
	if w.VCJob("second") != nil {
		t.Error("the VCJob of second was created before second was admitted")
	}
	w.setPhase("first", volcano.Completed)
	w.UntilPhase("first", lattice.Succeeded)
	w.UntilPhase("second", lattice.Running)

	// Deactivation evicts the job. Its VCJob is deleted, and recreated when the job is admitted again.
	before := w.VCJob("second")
	workload := w.UntilWorkloadOf("second", "is admitted",
		func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Change(workload, func() { workload.Spec.Active = ptr.To(false) })
	w.UntilLatticeJob("second", "is evicted",
		func(job *lattice.LatticeJob) bool { return job.Status.Phase == lattice.Pending })
	harness.Until(w.World, &volcano.JobList{}, "the VCJob of second is deleted", func(list *volcano.JobList) bool {
		for i := range list.Items {
			if list.Items[i].UID == before.UID {
				return false
			}
		}
		return true
	})
	w.Change(workload, func() { workload.Spec.Active = ptr.To(true) })
	w.UntilPhase("second", lattice.Running)
	if after := w.VCJob("second"); after == nil || after.UID == before.UID {
		t.Errorf("VCJob of second after its admission = %v, want a new one", after)
	}
	w.setPhase("second", volcano.Failed)
	w.UntilPhase("second", lattice.Failed)
}

// TestAJobWithADeletedVCJobHoldsNoQuota: when a user deletes the VCJob of a running LatticeJob, the job releases its
// quota, says so in its message, and does not create another VCJob.
func TestAJobWithADeletedVCJobHoldsNoQuota(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	w.queue("2")
	w.job("lost", "q", 2)
	w.UntilPhase("lost", lattice.Running)
	w.job("next", "q", 2)
	w.Delete(w.VCJob("lost"))
	w.UntilEvent("lost", "VCJobGone")
	w.UntilPhase("next", lattice.Running)
	lost := w.UntilPhase("lost", lattice.Running)
	if w.VCJob("lost") != nil || !strings.HasPrefix(lost.Status.Message, "Its VCJob was deleted") {
		t.Errorf("LatticeJob lost has the VCJob %v and the message %q, want none and that it was deleted", w.VCJob("lost"),
			lost.Status.Message)
	}
}

// TestADeletedJobReleasesItsQuota: deleting a running LatticeJob releases its quota.
func TestADeletedJobReleasesItsQuota(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	w.queue("2")
	w.job("first", "q", 2)
	w.Delete(w.UntilPhase("first", lattice.Running))
	w.job("next", "q", 2)
	w.UntilPhase("next", lattice.Running)
}

// TestAJobInAVolcanoQueueIsSubmittedAtOnce: the VCJob of a LatticeJob whose queue is not one of Muster's is created
// without admission, and the message says that no quota of Muster covers it.
func TestAJobInAVolcanoQueueIsSubmittedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	w.job("theirs", "volcano-only", 3)
	job := w.UntilPhase("theirs", lattice.Running)
	if want :=
		"Job submitted to Volcano. Its queue is not managed by Muster, so Muster's quota does not cover it"; job.Status.Message != want {
		t.Errorf("LatticeJob has the message %q, want %q", job.Status.Message, want)
	}
	vcjob := w.VCJob("theirs")
	if vcjob == nil || vcjob.Spec.Queue != "volcano-only" || vcjob.Spec.SchedulerName != "volcano" {
		t.Fatalf("VCJob = %+v, want one with queue volcano-only and scheduler volcano", vcjob)
	}
	var workloads kueue.WorkloadList
	if err := w.Client.List(t.Context(), &workloads, client.InNamespace(w.Namespace)); err != nil ||
		len(workloads.Items) > 0 {
		t.Errorf("Workloads = %v, error %v, want none", workloads.Items, err)
	}
	if vcjob.Status.State.Phase != "" {
		t.Errorf("VCJob has the state %+v, want none: only Volcano may run it", vcjob.Status.State)
	}
	w.setPhase("theirs", volcano.Completed)
	w.UntilPhase("theirs", lattice.Succeeded)
}

// TestChangesOfARunningJobAreRejected: with "immutable: deny" in the configuration, the API server rejects changes of
// the spec of a running LatticeJob. Its metadata may change.
func TestChangesOfARunningJobAreRejected(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	job := w.job("fixed", "volcano-only", 1)
	w.UntilPhase("fixed", lattice.Running)
	before := w.VCJob("fixed")
	err := w.Client.Patch(t.Context(), job.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"spec": {"maxRetry": 5}}`)))
	if !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "the spec of a LatticeJob cannot be changed once it runs") {
		t.Errorf("changing the spec of a running job: error %v, want Invalid with the reason", err)
	}
	w.Change(job, func() { job.Labels = map[string]string{"team": "a"} })
	if after := w.VCJob("fixed"); after.Generation != before.Generation {
		t.Errorf("VCJob has generation %d, want %d as before", after.Generation, before.Generation)
	}
}

// TestAnEvictedJobLeavesTheMesh: the mesh members of a LatticeJob are deleted when it is evicted. None are left if it
// then fails because its changed spec cannot be compiled.
func TestAnEvictedJobLeavesTheMesh(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	w.installCRD("lattice.dev", "v1alpha1", "LatticeMeshMember", "latticemeshmembers")
	w.queue("2")
	job := w.job("meshed", "q", 1, func(task *lattice.JobTaskSpec) {
		task.Workload.Service = &lattice.ServiceSpec{Ports: map[string]lattice.ServicePort{"http": {Port: 80}}}
	})
	w.UntilPhase("meshed", lattice.Running)
	members := &unstructured.UnstructuredList{}
	members.SetAPIVersion("lattice.dev/v1alpha1")
	members.SetKind("LatticeMeshMemberList")
	harness.Until(w.World, members, "the job has a mesh member",
		func(list *unstructured.UnstructuredList) bool { return len(list.Items) == 1 })

	workload := w.UntilWorkloadOf("meshed", "is admitted",
		func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Change(workload, func() { workload.Spec.Active = ptr.To(false) })
	w.UntilLatticeJob("meshed", "is evicted",
		func(job *lattice.LatticeJob) bool { return job.Status.Phase == lattice.Pending })
	harness.Until(w.World, members, "the mesh member of the evicted job is deleted",
		func(list *unstructured.UnstructuredList) bool { return len(list.Items) == 0 })
	w.Change(job, func() {
		task := job.Spec.Tasks["worker"]
		main := task.Workload.Containers["main"]
		main.Variables = map[string]string{"X": "${resources.nope.host}"}
		task.Workload.Containers["main"] = main
		job.Spec.Tasks["renamed"] = task
		delete(job.Spec.Tasks, "worker")
	})
	w.UntilPhase("meshed", lattice.Failed)
	harness.Until(w.World, members, "the failed job has no mesh members",
		func(list *unstructured.UnstructuredList) bool { return len(list.Items) == 0 })
}

// TestWorkloadsOfNativeModeAreDeleted: in external mode, the Workloads of VCJobs that Muster ran in native mode are
// deleted, which releases their quota.
func TestWorkloadsOfNativeModeAreDeleted(t *testing.T) {
	w := newWorld(t)
	w.queue("2")
	owner := metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "before",
		UID: "4a3f6e0e-0000-4000-8000-000000000001", Controller: ptr.To(true)}
	pods := kueue.PodSet{Name: "main", Count: 1}
	pods.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	pods.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("1Mi")}}}}
	const name = "job-before-f8b58" // the name that Muster gives to the Workload of this VCJob
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Finalizers: []string{kueue.ResourceInUseFinalizer}},
		Spec:       kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{pods}},
	}
	w.Create(workload)
	w.UntilWorkload(name, "is admitted", harness.Runs)
	// the Workload of a VCJob, with quota
	w.Change(workload, func() { workload.OwnerReferences = []metav1.OwnerReference{owner} })
	harness.Until(w.World, &kueue.WorkloadList{}, "all Workloads are deleted",
		func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
}

// TestAPendingJobMayMoveToAVolcanoQueue: the Workload of a pending LatticeJob is deleted when its queue is changed to
// one of Volcano, and the job runs without quota.
func TestAPendingJobMayMoveToAVolcanoQueue(t *testing.T) {
	w := newWorld(t)
	w.installVolcano()
	w.queue("1")
	job := w.job("moved", "q", 2)
	w.UntilLatticeJob("moved", "waits for quota", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.HasPrefix(job.Status.Message, "Waiting for quota: ")
	})
	w.Change(job, func() { job.Spec.Queue = "volcano-only" })
	w.UntilPhase("moved", lattice.Running)
	harness.Until(w.World, &kueue.WorkloadList{}, "all Workloads are deleted",
		func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
}
