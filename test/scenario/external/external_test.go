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

// defineJobs has Volcano be installed.
func (w *world) defineJobs() { w.define("batch.volcano.sh", "v1alpha1", "Job", "jobs") }

// TestJobsWaitUntilVolcanoIsInstalled: they say so, take no quota, and go on when it comes. It is the first to run: the
// definition stays for the others.
func TestJobsWaitUntilVolcanoIsInstalled(t *testing.T) {
	w := newWorld(t)
	w.queue("4")
	w.job("early", "q", 2)
	w.UntilLatticeJob("early", "says what it waits for", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending &&
			job.Status.Message == "The cluster does not serve Job (batch.volcano.sh), which the job needs: it continues once that is installed"
	})
	w.UntilEvent("early", "MissingKind")
	var workloads kueue.WorkloadList
	if err := w.Client.List(t.Context(), &workloads, client.InNamespace(w.Namespace)); err != nil || len(workloads.Items) > 0 {
		t.Errorf("it asks for quota that nobody would use: %v, %v", workloads.Items, err)
	}
	w.defineJobs()
	w.UntilPhase("early", lattice.Running)
	w.volcano("early", volcano.Completed)
	w.UntilPhase("early", lattice.Succeeded)
}

// TestAMusterQueueAdmitsAJobBeforeItsVCJobIsCreated: its VCJob is made once there is room, gives the quota back at its end, and goes
// with it when the job is evicted.
func TestAMusterQueueAdmitsAJobBeforeItsVCJobIsCreated(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	w.queue("2")
	w.job("first", "q", 2)
	first := w.UntilPhase("first", lattice.Running)
	if first.Status.Message != lattice.SubmittedMessage {
		t.Errorf("it says %q", first.Status.Message)
	}
	w.UntilWorkloadOf("first", "is admitted", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.job("second", "q", 1)
	w.UntilLatticeJob("second", "says why it waits", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.HasPrefix(job.Status.Message, "Waiting for quota: ")
	})
	if w.VCJob("second") != nil {
		t.Error("its VCJob was made before it was admitted")
	}
	w.volcano("first", volcano.Completed)
	w.UntilPhase("first", lattice.Succeeded)
	w.UntilPhase("second", lattice.Running)

	// It is evicted, and made anew when it is admitted again.
	before := w.VCJob("second")
	workload := w.UntilWorkloadOf("second", "is admitted", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Change(workload, func() { workload.Spec.Active = ptr.To(false) })
	w.UntilLatticeJob("second", "is evicted", func(job *lattice.LatticeJob) bool { return job.Status.Phase == lattice.Pending })
	harness.Until(w.World, &volcano.JobList{}, "its VCJob is gone", func(list *volcano.JobList) bool {
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
		t.Errorf("its VCJob was not made anew: %v", after)
	}
	w.volcano("second", volcano.Failed)
	w.UntilPhase("second", lattice.Failed)
}

// TestAJobWithADeletedVCJobHoldsNoQuota: somebody has deleted its VCJob, which is not made again.
func TestAJobWithADeletedVCJobHoldsNoQuota(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	w.queue("2")
	w.job("lost", "q", 2)
	w.UntilPhase("lost", lattice.Running)
	w.job("next", "q", 2)
	w.Delete(w.VCJob("lost"))
	w.UntilEvent("lost", "VCJobGone")
	w.UntilPhase("next", lattice.Running)
	lost := w.UntilPhase("lost", lattice.Running)
	if w.VCJob("lost") != nil || !strings.HasPrefix(lost.Status.Message, "Its VCJob was deleted") {
		t.Errorf("it says %q", lost.Status.Message)
	}
}

// TestADeletedJobReleasesItsQuota, though it was running.
func TestADeletedJobReleasesItsQuota(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	w.queue("2")
	w.job("first", "q", 2)
	w.Delete(w.UntilPhase("first", lattice.Running))
	w.job("next", "q", 2)
	w.UntilPhase("next", lattice.Running)
}

// TestAJobInAVolcanoQueueIsSubmittedAtOnce: at once, and the status says that Muster's quota does not cover it.
func TestAJobInAVolcanoQueueIsSubmittedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	w.job("theirs", "volcanos-own", 3)
	job := w.UntilPhase("theirs", lattice.Running)
	if want := "Job submitted to Volcano. Its queue is not one of Muster's, whose quota does not cover it"; job.Status.Message != want {
		t.Errorf("it says %q, want %q", job.Status.Message, want)
	}
	vcjob := w.VCJob("theirs")
	if vcjob == nil || vcjob.Spec.Queue != "volcanos-own" || vcjob.Spec.SchedulerName != "volcano" {
		t.Errorf("its VCJob: %+v", vcjob)
	}
	var workloads kueue.WorkloadList
	if err := w.Client.List(t.Context(), &workloads, client.InNamespace(w.Namespace)); err != nil || len(workloads.Items) > 0 {
		t.Errorf("it asks for Muster's quota: %v, %v", workloads.Items, err)
	}
	if vcjob.Status.State.Phase != "" {
		t.Errorf("somebody else runs it: %+v", vcjob.Status.State)
	}
	w.volcano("theirs", volcano.Completed)
	w.UntilPhase("theirs", lattice.Succeeded)
}

// TestChangesOfARunningJobAreRejected: as latticeJob.immutable: deny has it.
func TestChangesOfARunningJobAreRejected(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	job := w.job("fixed", "volcanos-own", 1)
	w.UntilPhase("fixed", lattice.Running)
	before := w.VCJob("fixed")
	err := w.Client.Patch(t.Context(), job.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"maxRetry": 5}}`)))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the spec of a LatticeJob cannot be changed once it runs") {
		t.Errorf("it says %v", err)
	}
	w.Change(job, func() { job.Labels = map[string]string{"who": "me"} }) // what is not the spec may change
	if after := w.VCJob("fixed"); after.Generation != before.Generation {
		t.Error("the VCJob was changed")
	}
}

// TestAnEvictedJobLeavesTheMesh of a job that was evicted and can then not be compiled any more.
func TestAnEvictedJobLeavesTheMesh(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	w.define("lattice.dev", "v1alpha1", "LatticeMeshMember", "latticemeshmembers")
	w.queue("2")
	job := w.job("meshed", "q", 1, func(task *lattice.JobTaskSpec) {
		task.Workload.Service = &lattice.ServiceSpec{Ports: map[string]lattice.ServicePort{"http": {Port: 80}}}
	})
	w.UntilPhase("meshed", lattice.Running)
	members := &unstructured.UnstructuredList{}
	members.SetAPIVersion("lattice.dev/v1alpha1")
	members.SetKind("LatticeMeshMemberList")
	harness.Until(w.World, members, "it is in the mesh", func(list *unstructured.UnstructuredList) bool { return len(list.Items) == 1 })

	workload := w.UntilWorkloadOf("meshed", "is admitted", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Change(workload, func() { workload.Spec.Active = ptr.To(false) })
	w.UntilLatticeJob("meshed", "is evicted", func(job *lattice.LatticeJob) bool { return job.Status.Phase == lattice.Pending })
	harness.Until(w.World, members, "it has left the mesh", func(list *unstructured.UnstructuredList) bool { return len(list.Items) == 0 })
	w.Change(job, func() {
		task := job.Spec.Tasks["worker"]
		main := task.Workload.Containers["main"]
		main.Variables = map[string]string{"X": "${resources.nope.host}"}
		task.Workload.Containers["main"] = main
		job.Spec.Tasks["renamed"] = task
		delete(job.Spec.Tasks, "worker")
	})
	w.UntilPhase("meshed", lattice.Failed)
	harness.Until(w.World, members, "nothing is left in the mesh", func(list *unstructured.UnstructuredList) bool { return len(list.Items) == 0 })
}

// TestWorkloadsOfNativeModeAreDeleted: Workloads from when Muster ran VCJobs are deleted, and their quota is released.
func TestWorkloadsOfNativeModeAreDeleted(t *testing.T) {
	w := newWorld(t)
	w.queue("2")
	owner := metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "before", UID: "4a3f6e0e-0000-4000-8000-000000000001", Controller: ptr.To(true)}
	pods := kueue.PodSet{Name: "main", Count: 1}
	pods.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	pods.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Mi")}}}}
	const name = "job-before-f8b58" // as Muster names those of a VCJob of that name and UID
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Finalizers: []string{kueue.ResourceInUseFinalizer}},
		Spec:       kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{pods}},
	}
	w.Create(workload)
	w.UntilWorkload(name, "is admitted", harness.Runs)
	w.Change(workload, func() { workload.OwnerReferences = []metav1.OwnerReference{owner} }) // with its quota it is a VCJob's
	harness.Until(w.World, &kueue.WorkloadList{}, "none is left", func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
}

// TestAPendingJobMayMoveToAVolcanoQueue: it asks Muster for nothing any more.
func TestAPendingJobMayMoveToAVolcanoQueue(t *testing.T) {
	w := newWorld(t)
	w.defineJobs()
	w.queue("1")
	job := w.job("moved", "q", 2)
	w.UntilLatticeJob("moved", "says why it waits", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.HasPrefix(job.Status.Message, "Waiting for quota: ")
	})
	w.Change(job, func() { job.Spec.Queue = "volcanos-own" })
	w.UntilPhase("moved", lattice.Running)
	harness.Until(w.World, &kueue.WorkloadList{}, "none is left", func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
}
