package jobs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// cpus returns a pod set main of this many pods with this CPU quantity each.
func cpus(count int32, cpu string) []kueue.PodSet {
	return []kueue.PodSet{{Name: "main", Count: count, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}}}
}

func TestPrebuiltWorkloadIsAdoptedIfItDescribesTheJob(t *testing.T) {
	job := jobWith(map[string]string{kueue.PrebuiltWorkloadLabel: "prebuilt"})
	// The API server fills in a Job's template; who writes a Workload by hand does not.
	described := Description{PodSets: cpus(2, "1000m")}
	described.PodSets[0].Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	described.PodSets[0].Template.Labels = map[string]string{"job-name": "j"}
	prebuilt := func(podSets []kueue.PodSet) *kueue.Workload {
		return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{PodSets: podSets}}
	}
	owned := func(uid string) *kueue.Workload {
		w := prebuilt(cpus(2, "1"))
		other := jobWith(nil)
		other.UID = "other"
		if uid == "job-uid" {
			other = job
		}
		w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, jobSetKind)}
		return w
	}
	forged := prebuilt(cpus(2, "10m"))
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "JobSet", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}}
	workload.SetCondition(forged, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", now)
	// Somebody had a small one admitted, for a job that needs much.
	small := prebuilt(cpus(2, "10m"))
	workload.SetCondition(small, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", now)
	over := prebuilt(cpus(3, "1"))
	finish(over, kueue.WorkloadFinishedReasonOutOfSync, "", now)
	// The cache keeps no pod sets of a Workload that is finished.
	ended := func(w *kueue.Workload) *kueue.Workload {
		finish(w, kueue.WorkloadFinishedReasonSucceeded, "", now)
		w.Spec.PodSets = nil
		return w
	}
	for name, tc := range map[string]struct {
		found  *kueue.Workload
		writes []string
		event  string
	}{
		"one that asks the same":                    {prebuilt(cpus(2, "1")), []string{"change prebuilt"}, ""},
		"one that is taken already":                 {owned("job-uid"), nil, ""},
		"one that is missing":                       {nil, nil, prebuiltMissing},
		"one of another job":                        {owned("other"), nil, prebuiltTaken},
		"one of the job's UID, in another group":    {forged, nil, prebuiltTaken},
		"one of another count":                      {prebuilt(cpus(3, "1")), []string{"change status of prebuilt"}, prebuiltOutOfSync},
		"one of another size":                       {prebuilt(cpus(2, "2")), []string{"change status of prebuilt"}, prebuiltOutOfSync},
		"one of another size with quota":            {small, []string{"change status of prebuilt"}, prebuiltOutOfSync},
		"one that was reported so is reported once": {over, nil, prebuiltOutOfSync},
		"one that is finished already":              {ended(prebuilt(cpus(2, "1"))), nil, prebuiltFinished},
		"one that ended with the job":               {ended(owned("job-uid")), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			writes, events := takePrebuilt(job, jobSetKind, tc.found, described, "q", now)
			if diff := cmp.Diff(tc.writes, written(writes)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if got := len(events); got > 1 || (got == 1) != (tc.event != "") || got == 1 && events[0].Reason != tc.event {
				t.Errorf("events %v, want %s", events, tc.event)
			}
		})
	}
	writes, _ := takePrebuilt(job, jobSetKind, prebuilt(cpus(2, "1")), described, "q", now)
	taken := writes[0].object.(*kueue.Workload)
	if !metav1.IsControlledBy(taken, job) || taken.Labels[kueue.JobUIDLabel] != "job-uid" || taken.Spec.QueueName != "q" ||
		!strings.Contains(strings.Join(taken.Finalizers, ","), kueue.ResourceInUseFinalizer) {
		t.Errorf("taken as %+v", taken)
	}
}

func TestRequestOf(t *testing.T) {
	for text, want := range map[string]int32{"60": 60, "2147483647": 2147483647, "0": 0, "-1": 0, "": 0, "1h": 0, "2147483648": 0} {
		r, mistake := requestOf(jobWith(map[string]string{kueue.MaxExecTimeSecondsLabel: text}), PriorityFacts{})
		switch {
		case want == 0 && (mistake == nil || r.maximumExecutionTimeSeconds != nil || !strings.Contains(mistake.Message, kueue.MaxExecTimeSecondsLabel)):
			t.Errorf("%q: %+v, %+v", text, r, mistake)
		case want != 0 && (mistake != nil || *r.maximumExecutionTimeSeconds != want):
			t.Errorf("%q: %+v, %+v", text, r, mistake)
		}
	}
	if r, mistake := requestOf(jobWith(nil), PriorityFacts{}); r.maximumExecutionTimeSeconds != nil || mistake != nil {
		t.Errorf("without the label: %+v, %+v", r, mistake)
	}
}

func TestMissingPriorityClassIsAMistake(t *testing.T) {
	job := jobWith(map[string]string{kueue.WorkloadPriorityClassLabel: "high"})
	if _, mistake := requestOf(job, PriorityFacts{}); mistake == nil || mistake.Reason != InvalidJob {
		t.Errorf("reported %+v", mistake)
	}
	there := PriorityFacts{Workload: map[string]*kueue.WorkloadPriorityClass{"high": {Value: 5}}}
	if _, mistake := requestOf(job, there); mistake != nil {
		t.Errorf("once it exists: %+v", mistake)
	}
}

// TestMistakeSaysWhatFollows: a job that has a Workload keeps to it.
func TestMistakeSaysWhatFollows(t *testing.T) {
	job := jobWith(map[string]string{kueue.MaxExecTimeSecondsLabel: "1h"})
	own := Description{Mistake: Mistake("One is wrong")}
	fixed := Description{Mistake: FixedMistake("One is wrong")}
	final := Description{Mistake: ptr.To(Obstacle(InvalidJob, "One is wrong, for good"))}
	for name, tc := range map[string]struct {
		described   Description
		hasWorkload bool
		want        []string
	}{
		"before it is queued": {own, false, []string{"One is wrong. The job is not queued until this is corrected", " 2147483647. The job is not queued until this is corrected"}},
		"once it is":          {own, true, []string{"One is wrong. Until this is corrected the job keeps its previous settings", " 2147483647. Until this is corrected the job keeps its previous settings"}},
		"of one that is fixed, before it is queued": {fixed, false, []string{
			"One is wrong. The job is not queued: this part of a Job is immutable, so delete it and create another", ". The job is not queued until this is corrected"}},
		"of one that is fixed, once it is": {fixed, true, []string{
			"One is wrong. This part of a Job is immutable: the job stays in the queue, or runs, as it is", ". Until this is corrected the job keeps its previous settings"}},
		"of one that stays wrong": {final, false, []string{"One is wrong, for good", ". The job is not queued until this is corrected"}},
	} {
		t.Run(name, func(t *testing.T) {
			reported := mistakesOf(job, tc.described, PriorityFacts{}, tc.hasWorkload)
			if len(reported) != len(tc.want) {
				t.Fatalf("reported %+v", reported)
			}
			for i, want := range tc.want {
				if !strings.HasSuffix(reported[i].Message, want) || !reported[i].Standing || reported[i].Reason != InvalidJob {
					t.Errorf("reported %+v, want %q", reported[i], want)
				}
			}
		})
	}
}
