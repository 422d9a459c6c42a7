package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/config"
)

func labQueue() kueue.ClusterQueue {
	return kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "lab"},
		Spec: kueue.ClusterQueueSpec{Cohort: "all", NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"},
				Flavors: []kueue.FlavorQuotas{{Name: "h100", Resources: []kueue.ResourceQuota{{
					Name: "nvidia.com/gpu", NominalQuota: resource.MustParse("32"),
				}}}},
			}}},
	}
}

func labDoor() kueue.LocalQueue {
	return kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpu"},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: "lab"},
	}
}

// waitingJob returns a JobSet and its pending Workload.
func waitingJob(name string, priority int32, createdAt int, reason string) (jobset.JobSet, kueue.Workload) {
	return aJobSet(name, inQueue("gpu")), aWorkload(name, func(w *kueue.Workload) {
		w.Spec.Priority, w.CreationTimestamp = &priority, at(createdAt)
		with(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, reason, "16 more needed", 1)(w)
	})
}

func TestQueuesShowQuotaAndHead(t *testing.T) {
	snapshot := Snapshot{ClusterQueues: []kueue.ClusterQueue{labQueue()}, LocalQueues: []kueue.LocalQueue{labDoor()}}
	for _, job := range []struct {
		name      string
		priority  int32
		createdAt int
		reason    string
	}{
		{"older", 0, 1, "WaitingForQuota"},
		{"urgent", 100, 9, "WaitingForQuota"},
		{"broken", 1000, 0, "Inadmissible"}, // inadmissible, so that it blocks no others
	} {
		js, w := waitingJob(job.name, job.priority, job.createdAt, job.reason)
		snapshot.JobSets, snapshot.Workloads = append(snapshot.JobSets, js), append(snapshot.Workloads, w)
	}
	snapshot.Workloads = append(snapshot.Workloads,
		aWorkload("train", admitted(2)),
		// Two of four pods have finished, and the job waits for its admission checks.
		aWorkload("checked", admitted(2), func(w *kueue.Workload) {
			w.Status.Conditions = w.Status.Conditions[:1]
			w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "workers", Count: 2}}
		}),
		// The job was admitted with two of four pods. Of the four requested two are reclaimable, and two are left.
		aWorkload("partial", admitted(2), func(w *kueue.Workload) {
			given := &w.Status.Admission.PodSetAssignments[0]
			given.Count, given.ResourceUsage = ptr.To(int32(2)), list("nvidia.com/gpu", "16")
			w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "workers", Count: 2}}
		}),
		// The job was resized from four pods to two, and the other two are still terminating.
		aWorkload("shrinking", admitted(2), func(w *kueue.Workload) {
			given := &w.Status.Admission.PodSetAssignments[0]
			given.Count, given.ResourceUsage = ptr.To(int32(2)), list("nvidia.com/gpu", "16")
			w.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "workers", Resources: list("nvidia.com/gpu", "32")}}
		}),
		aWorkload("over", admitted(2), with(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "", 9)),
	)
	got := Queues(&snapshot, "", at(60).Time)
	want := []Queue{{
		Name: "lab", Cohort: "all", Active: true, Pending: 3, Reserving: 4, Admitted: 3,
		Head: &Head{Namespace: "ml", Job: "jobset/urgent", Workload: "w-urgent", Reason: "WaitingForQuota",
			Message: "16 more needed"},
		Quotas: []Quota{{
			Flavor: "h100", Resource: "nvidia.com/gpu",
			Used: resource.MustParse("80"), Reserved: resource.MustParse("96"),
			Nominal: resource.MustParse("32"), Borrowed: resource.MustParse("64"),
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues differ (-want +got):\n%s", diff)
	}
}

// TestQueueOfJobsNotConsideredHasNoHead: such jobs still count as pending.
func TestQueueOfJobsNotConsideredHasNoHead(t *testing.T) {
	js, w := waitingJob("gated", 0, 1, "AdmissionGated")
	w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "someone"}
	snapshot := Snapshot{ClusterQueues: []kueue.ClusterQueue{labQueue()}, LocalQueues: []kueue.LocalQueue{labDoor()},
		JobSets: []jobset.JobSet{js}, Workloads: []kueue.Workload{w}}
	if got := Queues(&snapshot, "", at(60).Time)[0]; got.Head != nil || got.Pending != 1 {
		t.Errorf("head = %+v with %d pending jobs, want none with 1", got.Head, got.Pending)
	}
}

// TestHeadIsTheJobConsideredNext: the head is the first job in the order of the operator.
func TestHeadIsTheJobConsideredNext(t *testing.T) {
	evicted := func(reason string, second int) func(*kueue.Workload) {
		return with(kueue.WorkloadEvicted, metav1.ConditionTrue, reason, "", second)
	}
	byCreation := config.Default()
	*byCreation.WaitForPodsReady.RequeuingStrategy.Timestamp = v1alpha1.CreationTimestamp
	for name, tc := range map[string]struct {
		configuration *v1alpha1.Configuration
		// older was created first; each function, if set, modifies its Workload.
		older, younger func(w *kueue.Workload)
		want           string
	}{
		"order by age": {want: "older"},
		"skips a backoff": {older: func(w *kueue.Workload) {
			w.Status.RequeueState = &kueue.RequeueState{Count: ptr.To(int32(1)), RequeueAt: ptr.To(at(90))}
		}, want: "younger"},
		"skips a gated workload": {older: func(w *kueue.Workload) {
			w.Annotations = map[string]string{kueue.AdmissionGatedByAnnotation: "someone"}
		}, want: "younger"},
		"skips a stopped LocalQueue": {older: func(w *kueue.Workload) {
			w.Spec.QueueName = "held"
			w.Status.Conditions[0].Reason, w.Status.Conditions[0].Message = kueue.WorkloadOnHold, "LocalQueue held is stopped"
		}, want: "younger"},
		"first queued": {younger: func(w *kueue.Workload) {
			w.Annotations = map[string]string{muster.QueuedTimeAnnotation: at(0).UTC().Format(time.RFC3339)}
		}, want: "younger"},
		"lost its nodes": {younger: evicted(kueue.WorkloadEvictedDueToNodeFailures, 20),
			want: "younger"},
		"pods-ready timeout moves back": {older: evicted(kueue.WorkloadEvictedByPodsReadyTimeout, 20),
			want: "younger"},
		"pods-ready timeout, ordered by creation": {configuration: byCreation,
			older: evicted(kueue.WorkloadEvictedByPodsReadyTimeout, 20), want: "older"},
	} {
		t.Run(name, func(t *testing.T) {
			held := labDoor()
			held.Name, held.Spec.StopPolicy = "held", ptr.To(kueue.Hold)
			snapshot := Snapshot{ClusterQueues: []kueue.ClusterQueue{labQueue()},
				LocalQueues: []kueue.LocalQueue{labDoor(), held}, Configuration: tc.configuration}
			for i, name := range []string{"older", "younger"} {
				js, w := waitingJob(name, 0, i+1, "WaitingForQuota")
				if change := []func(*kueue.Workload){tc.older, tc.younger}[i]; change != nil {
					change(&w)
				}
				snapshot.JobSets, snapshot.Workloads = append(snapshot.JobSets, js), append(snapshot.Workloads, w)
			}
			if got := Queues(&snapshot, "", at(60).Time)[0].Head; got == nil || got.Job != "jobset/"+tc.want {
				t.Errorf("head = %+v, want %s", got, tc.want)
			}
		})
	}
}

// TestHeadByUsageIsOfTheLocalQueueThatUsedLess: usage, divided by weight, comes before priority and time. Past usage
// decays with a half-life, present usage does not.
func TestHeadByUsageIsOfTheLocalQueueThatUsedLess(t *testing.T) {
	queue := labQueue()
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	used, reserved := resource.MustParse("6"), resource.MustParse("5")
	greedy := labDoor()
	greedy.Status.FairSharing = &kueue.LocalQueueFairSharingStatus{
		AdmissionFairSharingStatus: &kueue.AdmissionFairSharingStatus{
			ConsumedResources: corev1.ResourceList{"nvidia.com/gpu": used}}}
	greedy.Status.FlavorsReservation = []kueue.LocalQueueFlavorUsage{{Name: "h100",
		Resources: []kueue.LocalQueueResourceUsage{{Name: "nvidia.com/gpu", Total: reserved}}}}
	heavy := *greedy.DeepCopy()
	heavy.Name, heavy.Spec.FairSharing = "heavy", &kueue.FairSharing{Weight: new(resource.MustParse("2"))}
	none := labDoor()
	none.Name, none.Spec.FairSharing = "none", &kueue.FairSharing{Weight: new(resource.MustParse("0"))}
	first, firstWorkload := waitingJob("first", 100, 1, "WaitingForQuota")
	last, lastWorkload := waitingJob("last", 0, 9, "WaitingForQuota")
	never, neverWorkload := waitingJob("never", 100, 0, "WaitingForQuota")
	lastWorkload.Spec.QueueName, neverWorkload.Spec.QueueName = "heavy", "none"
	snapshot := Snapshot{
		ClusterQueues: []kueue.ClusterQueue{queue}, LocalQueues: []kueue.LocalQueue{greedy, heavy, none},
		JobSets: []jobset.JobSet{first, last, never}, Workloads: []kueue.Workload{firstWorkload, lastWorkload, neverWorkload},
	}
	half := metav1.Duration{Duration: time.Hour}
	for name, tc := range map[string]struct {
		sharing *v1alpha1.AdmissionFairSharing
		want    string
	}{
		"past usage":    {&v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: half, UsageSamplingInterval: &half}, "w-last"},
		"present usage": {&v1alpha1.AdmissionFairSharing{UsageSamplingInterval: &half}, "w-last"},
		"usage of a resource without weight": {&v1alpha1.AdmissionFairSharing{UsageSamplingInterval: &half,
			ResourceWeights: map[corev1.ResourceName]float64{"nvidia.com/gpu": 0}}, "w-first"},
		"usage-based order is off": {nil, "w-never"},
	} {
		snapshot.Configuration = config.Default()
		snapshot.Configuration.AdmissionFairSharing = tc.sharing
		if head := Queues(&snapshot, "", at(60).Time)[0].Head; head == nil || head.Workload != tc.want {
			t.Errorf("%s: head = %+v, want %s", name, head, tc.want)
		}
	}
}

func TestQueuesOfANamespaceAreThoseOfItsLocalQueues(t *testing.T) {
	other := labQueue()
	other.Name = "other"
	snapshot := Snapshot{ClusterQueues: []kueue.ClusterQueue{labQueue(), other},
		LocalQueues: []kueue.LocalQueue{labDoor()}}
	got := Queues(&snapshot, "ml", at(0).Time)
	if len(got) != 1 || got[0].Name != "lab" {
		t.Errorf("queues = %v, want only lab", got)
	}
}

func TestInactiveQueueSaysWhy(t *testing.T) {
	queue := labQueue()
	queue.Status.Conditions = []metav1.Condition{{
		Type: kueue.ClusterQueueActive, Status: metav1.ConditionFalse, Reason: "FlavorNotFound",
		Message: "flavor h100 does not exist",
	}}
	got := Queues(&Snapshot{ClusterQueues: []kueue.ClusterQueue{queue}}, "", at(0).Time)
	if got[0].Active || got[0].Reason != "FlavorNotFound" {
		t.Errorf("got %+v, want it inactive for FlavorNotFound", got[0])
	}
}
