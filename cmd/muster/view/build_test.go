package view

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// start is the creation time of the objects of these tests; at(n) is n seconds later.
var start = time.Date(2025, 6, 1, 14, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

func list(pairs ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		amounts[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return amounts
}

func podTemplate(requests, limits corev1.ResourceList) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
	}}}}
}

// aJobSet returns a JobSet with one replicated job of two Jobs with two pods of 8 GPUs each.
func aJobSet(name string, change ...func(*jobset.JobSet)) jobset.JobSet {
	js := jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: at(0)},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 2,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To(int32(2)), Completions: ptr.To(int32(2)),
				Template: podTemplate(nil, list("nvidia.com/gpu", "8")),
			}},
		}}},
	}
	for _, c := range change {
		c(&js)
	}
	return js
}

// aGenericJob returns a GenericJob with four workers of 8 GPUs; queue is that of its scheduler section, "" for none.
func aGenericJob(name, queue string, change ...func(*tensorstack.GenericJob)) tensorstack.GenericJob {
	job := tensorstack.GenericJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: types.UID("uid-" + name), CreationTimestamp: at(0)},
		Spec: tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{{
			Type: "worker", Replicas: ptr.To(int32(4)), Template: podTemplate(nil, list("nvidia.com/gpu", "8")),
		}}},
	}
	if queue != "" {
		job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: queue}}
	}
	for _, f := range change {
		f(&job)
	}
	return job
}

// aTrainingJob returns a TrainingJob with two to four workers of 8 GPUs.
func aTrainingJob(name string, change ...func(*breezeml.TrainingJob)) breezeml.TrainingJob {
	job := breezeml.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: types.UID("uid-" + name), CreationTimestamp: at(0)},
		Spec: breezeml.TrainingJobSpec{MinSize: ptr.To(int32(2)), MaxSize: ptr.To(int32(4)),
			ReplicaSpecs: breezeml.ReplicaSpec{Template: podTemplate(nil, list("nvidia.com/gpu", "8"))}},
	}
	for _, f := range change {
		f(&job)
	}
	return job
}

// aVCJob returns a VCJob with four workers of 8 GPUs, in queue gpu.
func aVCJob(name string, change ...func(*volcano.Job)) volcano.Job {
	job := volcano.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: at(0)},
		Spec: volcano.JobSpec{Queue: "gpu", Tasks: []volcano.TaskSpec{{
			Name: "worker", Replicas: 4, Template: podTemplate(nil, list("nvidia.com/gpu", "8")),
		}}},
	}
	for _, f := range change {
		f(&job)
	}
	return job
}

// aLatticeJob returns a LatticeJob with two pods of 300m CPU.
func aLatticeJob(name string, phase lattice.JobPhase, message string) lattice.LatticeJob {
	job := lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name),
		CreationTimestamp: at(0)}}
	cpu := resource.MustParse("300m")
	job.Spec.Queue = "gpu"
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"t": {Replicas: ptr.To(int32(2)),
		Workload: lattice.WorkloadSpec{Containers: map[string]lattice.ContainerSpec{
			"main": {SidecarContainer: lattice.SidecarContainer{
				Resources: &lattice.ResourceRequirements{Limits: &lattice.ResourceQuantity{CPU: &cpu}}}},
		}}}}
	job.Status.Phase, job.Status.Message = phase, message
	return job
}

// ranFrom gives the LatticeJob the times of its status.
func ranFrom(started *metav1.Time, ended metav1.Time, job lattice.LatticeJob) lattice.LatticeJob {
	job.Status.StartTime, job.Status.CompletionTime = started, &ended
	return job
}

// scheduled gives the LatticeJob a schedule.
func scheduled(job lattice.LatticeJob) lattice.LatticeJob {
	job.Spec.Schedule = "@daily"
	return job
}

// madeFor makes the LatticeJob of that UID the owner of a VCJob.
func madeFor(uid types.UID) func(*volcano.Job) {
	return func(job *volcano.Job) {
		job.OwnerReferences = []metav1.OwnerReference{{APIVersion: lattice.GroupVersion.String(), Kind: "LatticeJob",
			Name: "etl", UID: uid, Controller: ptr.To(true)}}
	}
}

func inQueue(queue string) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) { js.Labels = map[string]string{kueue.QueueLabel: queue} }
}

func aJob(name string, change ...func(*batchv1.Job)) batchv1.Job {
	job := batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: at(0)},
		Spec:       batchv1.JobSpec{Template: podTemplate(list("cpu", "300m"), nil)},
	}
	for _, c := range change {
		c(&job)
	}
	return job
}

func ownedBy(js string, status batchv1.JobStatus) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: js, UID: types.UID("uid-" + js),
			Controller: ptr.To(true),
		}}
		job.Status = status
	}
}

func jobCondition(kind batchv1.JobConditionType, reason, message string, seconds int) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at(seconds),
		})
	}
}

// aWorkload returns a Workload for the JobSet or Job of that name, or one without owner if owner is empty.
func aWorkload(owner string, change ...func(*kueue.Workload)) kueue.Workload {
	w := kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w-" + owner, UID: types.UID("uid-w-" + owner),
			CreationTimestamp: at(0)},
		Spec: kueue.WorkloadSpec{
			QueueName: "gpu", Priority: ptr.To(int32(10)),
			PodSets: []kueue.PodSet{{Name: "workers", Count: 4, Template: podTemplate(nil, list("nvidia.com/gpu", "8"))}},
		},
	}
	if owner != "" {
		w.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: owner, UID: types.UID("uid-" + owner),
			Controller: ptr.To(true),
		}}
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

func with(kind string, status metav1.ConditionStatus, reason, message string, seconds int) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at(seconds),
		})
	}
}

func waitingForQuota(w *kueue.Workload) {
	with(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, kueue.WorkloadWaitingForQuota, "32 more needed", 1)(w)
}

// admitted admits a Workload in ClusterQueue lab with all that it requests.
func admitted(seconds int) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		with(kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason, "", seconds)(w)
		with(kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason, "", seconds)(w)
		w.Status.Admission = &kueue.Admission{ClusterQueue: "lab", PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "workers", Count: ptr.To(int32(4)), ResourceUsage: list("nvidia.com/gpu", "32"),
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "h100"},
		}}}
	}
}
