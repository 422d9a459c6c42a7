package workload

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// smallest returns an admitted Workload, with a job, whose status is as small as that of any other.
func smallest() *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Generation: 1,
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "a"}}}}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "q", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "a", Count: ptr.To[int32](1), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"},
		ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason,
		"Quota reserved in ClusterQueue q", start)
	SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason,
		"The workload is admitted", start)
	return w
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestTheBriefFormAlwaysFits: it is smaller than the Workload that is stored already.
func TestTheBriefFormAlwaysFits(t *testing.T) {
	later := start.Add(1000 * time.Hour)
	evicted := smallest()
	Evict(evicted, Eviction{Reason: kueue.WorkloadEvictedByPreemption, Cause: "InClusterQueue",
		Message: "for another"}, later)
	released := evicted.DeepCopy()
	GiveBack(released, later)
	shrunk := smallest()
	shrunk.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](0)
	for name, test := range map[string]struct{ seen, desired *kueue.Workload }{
		"an eviction":                   {smallest(), evicted},
		"the release after an eviction": {evicted, released},
		"an eviction with a release":    {smallest(), released},
		"fewer pods":                    {smallest(), shrunk},
	} {
		t.Run(name, func(t *testing.T) {
			brief := InBrief(test.seen, test.desired)
			if brief == nil || HoldsQuota(brief) || IsAdmitted(brief) || !IsEvictedInBrief(brief) {
				t.Fatalf("the brief form = %+v, want one without quota", brief)
			}
			if at := meta.FindStatusCondition(brief.Status.Conditions,
				kueue.WorkloadAdmitted).LastTransitionTime; name != "fewer pods" && !at.Time.Equal(later) {
				t.Errorf("it is not admitted since %s, want %s", at, later)
			}
			if was, is := bytesOf(t, test.seen), bytesOf(t, brief); is >= was {
				t.Errorf("the brief form has %d bytes, no less than the %d that are stored", is, was)
			}
		})
	}
}

// TestOnlyWhatTakesQuotaHasABriefForm: nothing else is worth the reason that the brief form omits.
func TestOnlyWhatTakesQuotaHasABriefForm(t *testing.T) {
	ready, finished, grown, evicted := smallest(), smallest(), smallest(), smallest()
	SetCondition(ready, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "", start)
	SetCondition(finished, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, "", start)
	grown.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](2)
	Evict(evicted, Eviction{Reason: kueue.WorkloadEvictedByPreemption}, start)
	evictedAndReady := evicted.DeepCopy()
	SetCondition(evictedAndReady, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "", start)
	waits := &kueue.Workload{}
	for name, test := range map[string]struct{ seen, desired *kueue.Workload }{
		"ready pods":                       {smallest(), ready},
		"an end":                           {smallest(), finished},
		"more pods":                        {smallest(), grown},
		"an admission":                     {waits, smallest()},
		"another change of an evicted one": {evicted, evictedAndReady},
	} {
		if brief := InBrief(test.seen, test.desired); brief != nil {
			t.Errorf("%s: the brief form = %+v, want none", name, brief.Status)
		}
	}
}

func bytesOf(t *testing.T, w *kueue.Workload) int {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}
