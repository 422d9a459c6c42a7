package decisions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
)

func TestAdmit(t *testing.T) {
	w := admissiontest.NewWorkload("w", 2, admissiontest.Quantities("cpu", "1500m", "memory", "1Gi"))
	w.Generation = 4
	places := &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname},
		Domains: []kueue.TopologyDomainAssignment{{Values: []string{"n"}, Count: 2}}}
	admit(w, &engine.Admission{ClusterQueue: "cq", PodSets: []engine.Assignment{{PodSet: "main", Count: 2,
		Flavors: map[string]string{"cpu": "f", "memory": "g"}, Usage: map[string]int64{"cpu": 3000, "memory": 2 << 30}}}},
		map[string]*kueue.TopologyAssignment{"main": places}, admissiontest.Now)
	condition := func(kind, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: message,
			ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(admissiontest.Now)}
	}
	want := kueue.WorkloadStatus{
		Admission: &kueue.Admission{ClusterQueue: "cq",
			PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](2),
				Flavors:            map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f", "memory": "g"},
				ResourceUsage:      corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("2Gi")},
				TopologyAssignment: places}}},
		Conditions: []metav1.Condition{
			condition("QuotaReserved", "Quota reserved in ClusterQueue cq"),
			condition("Admitted", "The workload is admitted"),
		},
	}
	if diff := cmp.Diff(want, w.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestAdmitClearsPastEvictions(t *testing.T) {
	past := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Preempted", Message: message}
	}
	for name, tc := range map[string]struct {
		before []metav1.Condition
		want   []string
	}{
		"a waiting Workload": {
			[]metav1.Condition{past("QuotaReserved", metav1.ConditionFalse, "waits")}, []string{}},
		"an evicted and preempted Workload": {
			[]metav1.Condition{past("Evicted", metav1.ConditionTrue, "for another"),
				past("Preempted", metav1.ConditionTrue, "by another")},
			[]string{"Evicted=False QuotaReserved: Previously: for another",
				"Preempted=False QuotaReserved: Previously: by another"}},
		"a Workload evicted from a stopped queue that has restarted": {
			[]metav1.Condition{{Type: "Requeued", Status: metav1.ConditionFalse,
				Reason: kueue.WorkloadEvictedByLocalQueueStopped, Message: "The LocalQueue is stopped"}},
			[]string{"Requeued=True LocalQueueRestarted: The LocalQueue was restarted after being stopped"}},
		"a Workload with an earlier eviction": {
			[]metav1.Condition{past("Evicted", metav1.ConditionFalse, "Previously: long ago")},
			[]string{"Evicted=False Preempted: Previously: long ago"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorkload("w", 1, nil)
			w.Status.Conditions = tc.before
			admit(w, &engine.Admission{ClusterQueue: "cq"}, nil, admissiontest.Now)
			got := map[string]string{}
			for _, line := range admissiontest.Conditions(w.Status.Conditions) {
				got[strings.SplitN(line, "=", 2)[0]] = line
			}
			want := map[string]string{
				"QuotaReserved": "QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq",
				"Admitted":      "Admitted=True Admitted: The workload is admitted",
			}
			for _, line := range tc.want {
				want[strings.SplitN(line, "=", 2)[0]] = line
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWait(t *testing.T) {
	w := admissiontest.NewWorkload("w", 1, nil)
	Wait(w, reason.Inadmissiblef("LocalQueue %s doesn't exist", "q"), admissiontest.Now)
	if diff := cmp.Diff([]string{"QuotaReserved=False Inadmissible: LocalQueue q doesn't exist"},
		admissiontest.Conditions(w.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestMessagesAreNeverTooLongForTheAPI: the API would reject the whole status for a message that is too long.
func TestMessagesAreNeverTooLongForTheAPI(t *testing.T) {
	long := strings.Repeat("x", 40000)
	w := admissiontest.NewWorkload("w", 1, nil)
	Wait(w, reason.Inadmissiblef("%s", long), admissiontest.Now)
	w.Status.Conditions = append(w.Status.Conditions,
		metav1.Condition{Type: "Evicted", Status: metav1.ConditionTrue, Message: long[:32768]})
	admit(w, &engine.Admission{ClusterQueue: "cq"}, nil, admissiontest.Now)
	Wait(w, reason.Inadmissiblef("%s", long), admissiontest.Now)
	for _, c := range w.Status.Conditions {
		if len(c.Message) > 32768 {
			t.Errorf("message of condition %s has %d bytes, want at most 32768", c.Type, len(c.Message))
		}
	}
}

// TestAPreemptionSaysWhyInTheWordsOfTheAPI: people build alerts on reasons and messages.
func TestAPreemptionSaysWhyInTheWordsOfTheAPI(t *testing.T) {
	for cause, want := range map[preempt.Cause][2]string{
		preempt.InQueue:                 {"InClusterQueue", "prioritization in the ClusterQueue"},
		preempt.Reclaimed:               {"InCohortReclamation", "reclamation within the cohort"},
		preempt.ReclaimedWhileBorrowing: {"InCohortReclaimWhileBorrowing", "reclamation within the cohort while borrowing"},
		preempt.FairShare:               {"InCohortFairSharing", "Fair Sharing within the cohort"},
	} {
		w := admissiontest.AdmittedWorkload("w")
		evict(w, &engine.Eviction{Cause: cause, PreemptorUID: "u", PreemptorPath: "/lab/a", Path: "/lab/b"},
			preemptorJob{uid: "j"}, admissiontest.Now)
		message := "Preempted to accommodate a workload (UID: u, JobUID: j) due to " + want[1] +
			"; preemptor path: /lab/a; preemptee path: /lab/b"
		for kind, reason := range map[string]string{"Evicted": "Preempted", "Preempted": want[0]} {
			c := meta.FindStatusCondition(w.Status.Conditions, kind)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || c.Message != message {
				t.Errorf("%s: %s = %+v, want the reason %s and the message %q", want[0], kind, c, reason, message)
			}
		}
		counted := []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", UnderlyingCause: want[0], Count: 1}}
		admissiontest.Expect(t, want[0]+": evictions", counted, w.Status.SchedulingStats.Evictions)
	}
}
