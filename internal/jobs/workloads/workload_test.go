package workloads

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

var (
	jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	now        = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	earlier    = now.Add(-time.Hour)
)

// minutely is a backoff that starts with a minute.
var minutely = Backoff{Base: time.Minute, Max: time.Hour}

// workloadBuilder builds a Workload, with a method for each thing that happens to it.
type workloadBuilder struct{ w *kueue.Workload }

// waiting returns the Workload of jobWith(nil) with a pod set main of two pods.
func waiting() workloadBuilder {
	return workloadBuilder{workloadFor(jobWith(nil), jobSetKind,
		jobs.Description{PodSets: []kueue.PodSet{{Name: "main", Count: 2}}}, "q", priority{}, request{})}
}

// is adds a condition.
func (w workloadBuilder) is(kind string, status metav1.ConditionStatus, reason, message string) workloadBuilder {
	w.w.Status.Conditions = append(w.w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(earlier)})
	return w
}

// admission assigns the flavors to the pod set main, without a condition.
func (w workloadBuilder) admission(flavors map[corev1.ResourceName]kueue.ResourceFlavorReference) workloadBuilder {
	w.w.Status.Admission = &kueue.Admission{ClusterQueue: "cq",
		PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Flavors: flavors}}}
	return w
}

func (w workloadBuilder) admitted() workloadBuilder {
	return w.admission(nil).is("QuotaReserved", metav1.ConditionTrue, "QuotaReserved",
		"Quota reserved in ClusterQueue cq").
		is("Admitted", metav1.ConditionTrue, "Admitted", "The workload is admitted")
}

func (w workloadBuilder) evicted(reason string) workloadBuilder {
	return w.is("Evicted", metav1.ConditionTrue, reason, "because")
}

// conditions returns a Workload's conditions as lines of text, "Type=Status Reason: message".
func conditions(w *kueue.Workload) []string {
	var out []string
	for _, c := range w.Status.Conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

func TestWorkloadName(t *testing.T) {
	const uid = "7b6a4f0e-1111-2222-3333-444455556666"
	// printf 'JobSet\njobset.x-k8s.io\npytorch\n7b6a4f0e-…' | sha1sum
	if got := workloadName(jobSetKind, "pytorch", uid); got != "jobset-pytorch-a88af" {
		t.Errorf("name = %s, want jobset-pytorch-a88af", got)
	}
	if workloadName(jobSetKind, "pytorch", "another") == "jobset-pytorch-a88af" {
		t.Error("a later job of the same name has the same Workload name")
	}
	long := workloadName(jobSetKind, strings.Repeat("x", 253), uid)
	if len(long) != 63 || long == workloadName(jobSetKind, strings.Repeat("x", 252), uid) {
		t.Errorf("the name for a job with a long name has %d bytes, want 63 and another one than for a shorter name: %s", len(long), long)
	}
	if whole := workloadName(jobSetKind, strings.Repeat("x", 50), uid); len(whole) != 63 ||
		!strings.HasPrefix(whole, "jobset-"+strings.Repeat("x", 50)+"-") {
		t.Errorf("the name of 63 bytes is cut: %s", whole)
	}
}

func TestWorkloadNameIsAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,3}[a-z0-9])?`)
		name := strings.Join(rapid.SliceOfN(label, 130, 130).Draw(t, "labels"), ".")
		name = strings.TrimRight(name[:min(len(name), 253)], "-.")
		got := workloadName(jobSetKind, name, "u")
		if errs := append(validation.IsDNS1123Subdomain(got), validation.IsValidLabelValue(got)...); len(errs) > 0 {
			t.Fatalf("the name %q for the job %q is invalid: %v", got, name, errs)
		}
	})
}

func TestWorkloadForDescribesTheJob(t *testing.T) {
	podSets := []kueue.PodSet{{Name: "main", Count: 3}}
	got := workloadFor(jobWith(inQueue("q")), jobSetKind, jobs.Description{PodSets: podSets}, "q",
		priority{5, "urgent", "kueue.x-k8s.io/workloadpriorityclass"}, request{})
	want := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: workloadName(jobSetKind, "j", "job-uid"), Namespace: "ns",
			Labels:     map[string]string{"kueue.x-k8s.io/job-uid": "job-uid"},
			Finalizers: []string{"kueue.x-k8s.io/resource-in-use"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet",
				Name: "j", UID: "job-uid",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: podSets, Priority: ptr.To[int32](5), PriorityClassName: "urgent",
			PriorityClassSource: "kueue.x-k8s.io/workloadpriorityclass", Active: ptr.To(true)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Workload (-want +got):\n%s", diff)
	}
}

func TestGrantOf(t *testing.T) {
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	flavors := map[string]*kueue.ResourceFlavor{
		"a": {Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"zone": "a", "disk": "ssd"}}},
		"b": {Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"gpu": "h100"},
			Tolerations: []corev1.Toleration{gpu}}},
	}
	both := map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "a", "memory": "a", "nvidia.com/gpu": "b"}
	for name, tc := range map[string]struct {
		w    *kueue.Workload
		want jobs.Admission
	}{
		"no Workload":  {nil, jobs.Admission{Grant: jobs.Waiting}},
		"no admission": {waiting().w, jobs.Admission{Grant: jobs.Waiting}},
		"quota reserved only": {
			waiting().admission(both).is("QuotaReserved", metav1.ConditionTrue, "QuotaReserved", "").w,
			jobs.Admission{Grant: jobs.Waiting}},
		"evicted with quota":      {waiting().admitted().evicted("Preempted").w, jobs.Admission{Grant: jobs.Stopping}},
		"evicted, quota released": {waiting().evicted("Preempted").w, jobs.Admission{Grant: jobs.Waiting}},
		"admitted again after an eviction": {
			waiting().admitted().is("Evicted", metav1.ConditionFalse, "QuotaReserved", "Previously: because").w,
			jobs.Admission{Grant: jobs.Admitted,
				PodSets: map[string]jobs.PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
					Labels: map[string]string{"kueue.x-k8s.io/podset": "main"}, NodeSelector: map[string]string{}}}}}},
		"missing flavor": {
			waiting().admission(map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "gone"}).is("Admitted",
				metav1.ConditionTrue, "Admitted", "").w,
			jobs.Admission{Grant: jobs.Admitted, MissingFlavor: "gone",
				PodSets: map[string]jobs.PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
					Labels: map[string]string{"kueue.x-k8s.io/podset": "main"}, NodeSelector: map[string]string{}}}}}},
		"two flavors": {
			waiting().admission(both).is("Admitted", metav1.ConditionTrue, "Admitted", "").w,
			jobs.Admission{Grant: jobs.Admitted,
				PodSets: map[string]jobs.PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
					Labels:       map[string]string{"kueue.x-k8s.io/podset": "main"},
					NodeSelector: map[string]string{"zone": "a", "disk": "ssd", "gpu": "h100"},
					Tolerations:  []corev1.Toleration{gpu}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if main, ok := tc.want.PodSets["main"]; ok {
				main.Template = &tc.w.Spec.PodSets[0].Template
				tc.want.PodSets["main"] = main
			}
			if diff := cmp.Diff(tc.want, grantOf(tc.w, flavors, nil),
				cmpopts.IgnoreFields(jobs.Admission{}, "UnreadySince")); diff != "" {
				t.Errorf("admission (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartialAdmissionGrantsTheAssignedCount(t *testing.T) {
	w := waiting().admitted().w
	w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](1)
	if got := grantOf(w, nil, nil).PodSets["main"].Count; got != 1 {
		t.Errorf("count = %d, want 1", got)
	}
}

// TestReport checks the conditions that a job's progress leads to.
func TestReport(t *testing.T) {
	const (
		readyMessage      = "All pods reached readiness and the workload is running"
		recoveringMessage = "At least one pod has failed, waiting for recovery"
	)
	quota := []string{"QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq",
		"Admitted=True Admitted: The workload is admitted"}
	withQuota := func(lines ...string) []string { return append(append([]string(nil), quota...), lines...) }
	released := func(reason string, requeued string) []string {
		return []string{
			"QuotaReserved=False PendingEvaluation: because",
			"Admitted=False NoReservation: The workload has no reservation",
			"Evicted=True " + reason + ": because",
			"Requeued=" + requeued + " " + reason + ": because",
		}
	}
	for name, tc := range map[string]struct {
		w        workloadBuilder
		progress jobs.Progress
		want     []string
		admitted bool // whether it keeps its admission
	}{
		"waiting":                   {waiting(), jobs.Progress{}, nil, false},
		"ready though not admitted": {waiting(), jobs.Progress{Ready: true}, nil, false},
		"admitted, pods starting":   {waiting().admitted(), jobs.Progress{Active: true}, quota, true},
		"all pods ready for the first time": {waiting().admitted(), jobs.Progress{Active: true, Ready: true},
			withQuota("PodsReady=True Started: " + readyMessage), true},
		"a pod not ready any more": {
			waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Started", readyMessage), jobs.Progress{Active: true},
			withQuota("PodsReady=False WaitForRecovery: " + recoveringMessage), true},
		"all pods ready again": {
			waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForRecovery", recoveringMessage),
			jobs.Progress{Active: true, Ready: true}, withQuota("PodsReady=True Recovered: " + readyMessage), true},
		"still ready": {
			waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Recovered", readyMessage), jobs.Progress{Ready: true},
			withQuota("PodsReady=True Recovered: " + readyMessage), true},
		"a later stage begins, before all of the first were ready": {
			waiting().admitted(), jobs.Progress{Active: true, Stage: &jobs.Stage{Name: "b"}},
			withQuota("PodsReady=False WaitForStart: Waiting for the pods of b, which may start now"), true},
		"a later stage begins, after the first was ready": {
			waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Started", readyMessage),
			jobs.Progress{Active: true, Stage: &jobs.Stage{Name: "b", Since: earlier.Add(time.Second)}},
			withQuota("PodsReady=False WaitForStart: The pods of an earlier stage were ready. Waiting for the pods of b, which may start now"), true},
		"a pod of a later stage that was ready is lost": {
			waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Started", readyMessage),
			jobs.Progress{Active: true, Stage: &jobs.Stage{Name: "b", Since: earlier}},
			withQuota("PodsReady=False WaitForRecovery: " + recoveringMessage), true},
		"the stage is waited for already": {
			waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForStart", "b"),
			jobs.Progress{Active: true, Stage: &jobs.Stage{Name: "b", Since: earlier.Add(time.Second)}},
			withQuota("PodsReady=False WaitForStart: b"), true},
		"the next stage begins": {
			waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForStart", "b"),
			jobs.Progress{Active: true, Stage: &jobs.Stage{Name: "c", Since: now}},
			withQuota("PodsReady=False WaitForStart: Waiting for the pods of c, which may start now"), true},
		"the last stage of those in order is ready": {
			waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForStart", "Waiting for b"),
			jobs.Progress{Ready: true}, withQuota("PodsReady=True Started: " + readyMessage), true},
		"the last stage is ready after another one was": {
			waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForStart", nextStageMessage+"Waiting for b"),
			jobs.Progress{Ready: true}, withQuota("PodsReady=True Recovered: " + readyMessage), true},
		"cannot be started": {waiting().admitted(), jobs.Progress{FailedToStart: "a clash"},
			withQuota("Finished=True FailedToStart: a clash"), true},
		"success": {waiting().admitted(),
			jobs.Progress{Outcome: &jobs.Outcome{Succeeded: true, Message: "all done"}},
			withQuota("Finished=True Succeeded: all done"), true},
		"failure": {waiting().admitted(), jobs.Progress{Outcome: &jobs.Outcome{Message: "boom"}},
			withQuota("Finished=True Failed: boom"), true},
		"ended while waiting": {waiting(), jobs.Progress{Outcome: &jobs.Outcome{Succeeded: true, Message: "m"}},
			[]string{"Finished=True Succeeded: m"}, false},
		"ended while evicted": {waiting().admitted().evicted("Preempted"),
			jobs.Progress{Active: true, Outcome: &jobs.Outcome{Message: "m"}},
			withQuota("Evicted=True Preempted: because", "Finished=True Failed: m"), true},
		"finished already": {
			waiting().admitted().is("Finished", metav1.ConditionTrue, "Succeeded", "m"),
			jobs.Progress{Outcome: &jobs.Outcome{Message: "other"}}, withQuota("Finished=True Succeeded: m"), true},
		"evicted with pods": {
			waiting().admitted().evicted("Preempted"), jobs.Progress{Active: true},
			withQuota("Evicted=True Preempted: because"), true},
		"preempted without pods": {waiting().admitted().evicted("Preempted"), jobs.Progress{},
			released("Preempted", "True"), false},
		"evicted for node failures without pods": {waiting().admitted().evicted("NodeFailures"), jobs.Progress{},
			released("NodeFailures", "True"), false},
		"deactivated without pods": {waiting().admitted().evicted("Deactivated"), jobs.Progress{},
			released("Deactivated", "False"), false},
		"not ready in time, without pods, which waits first": {waiting().admitted().evicted("PodsReadyTimeout"),
			jobs.Progress{}, released("PodsReadyTimeout", "False"), false},
		"preempted without pods after it was ready": {
			waiting().admitted().evicted("Preempted").is("PodsReady", metav1.ConditionTrue, "Started", readyMessage),
			jobs.Progress{}, released("Preempted", "True"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.w.w
			report(w, tc.progress, minutely, now)
			if diff := cmp.Diff(tc.want, conditions(w), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if admitted := w.Status.Admission != nil; admitted != tc.admitted {
				t.Errorf("admission kept: %v, want %v", admitted, tc.admitted)
			}
		})
	}
}

func TestUnheldPodsAreReportedUntilTheyAreGone(t *testing.T) {
	w := &kueue.Workload{}
	report(w, jobs.Progress{Active: true}, minutely, now)
	if !workload.IsTrue(w, muster.UnheldCondition) {
		t.Errorf("conditions = %v, want %s while pods run without quota", conditions(w), muster.UnheldCondition)
	}
	report(w, jobs.Progress{}, minutely, now)
	if len(w.Status.Conditions) != 0 {
		t.Errorf("conditions = %v, want none once the pods are gone", conditions(w))
	}
}

func TestReportedConditionsHaveTimeAndGeneration(t *testing.T) {
	w := waiting().admitted().w
	w.Generation = 3
	report(w, jobs.Progress{Ready: true}, minutely, now)
	got := meta.FindStatusCondition(w.Status.Conditions, "PodsReady")
	if got == nil || got.ObservedGeneration != 3 || !got.LastTransitionTime.Time.Equal(now) {
		t.Errorf("PodsReady = %+v, want generation 3 and the time of the report", got)
	}
}

// written returns the writes as "verb name".
func written(writes []write.Write) []string {
	var out []string
	for _, w := range writes {
		out = append(out, string(w.Verb())+" "+strings.Split(w.Object().GetName(), "-")[0])
	}
	return out
}

// deleted returns the Workload with a deletion timestamp.
func deleted(b workloadBuilder) *kueue.Workload {
	b.w.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	return b.w
}

// withoutFinalizers returns the Workload without its finalizers.
func withoutFinalizers(b workloadBuilder) *kueue.Workload {
	b.w.Finalizers = nil
	return b.w
}

// TestWorkloadWrites checks which writes follow from a Workload, its job's description and progress.
func TestWorkloadWrites(t *testing.T) {
	described := waiting().w
	deactivated := waiting()
	deactivated.w.Spec.Active = ptr.To(false)
	deactivated.w.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](60)
	moved := waiting()
	moved.w.Spec.QueueName = "other"
	movedWhileAdmitted := waiting().admitted()
	movedWhileAdmitted.w.Spec.QueueName = "other"
	urgent := waiting().w
	urgent.Spec.PriorityClassName, urgent.Spec.PriorityClassSource = "urgent", kueue.WorkloadPriorityClassSource
	promoted := waiting().admitted()
	promoted.w.Spec.PriorityClassName, promoted.w.Spec.PriorityClassSource = "idle", kueue.WorkloadPriorityClassSource
	if diff := cmp.Diff([]string{"change jobset"},
		written(workloadWrites(promoted.w, urgent, jobs.Progress{Active: true}, minutely, now))); diff != "" {
		t.Errorf("writes for another priority class of an admitted job (-want +got):\n%s", diff)
	}
	raised := waiting().admitted()
	raised.w.Spec.PriorityClassName, raised.w.Spec.PriorityClassSource, raised.w.Spec.Priority = "urgent",
		kueue.WorkloadPriorityClassSource, ptr.To[int32](-7)
	if diff := cmp.Diff([]string{"change jobset"},
		written(workloadWrites(raised.w, urgent, jobs.Progress{Active: true}, minutely, now))); diff != "" {
		t.Errorf("writes for another value of the priority class of an admitted job (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		seen     *kueue.Workload
		progress jobs.Progress
		want     []string
	}{
		"no Workload":             {nil, jobs.Progress{}, []string{"create jobset"}},
		"no Workload, job ended":  {nil, jobs.Progress{Outcome: &jobs.Outcome{}}, nil},
		"no difference":           {waiting().w, jobs.Progress{}, nil},
		"waiting, job changed":    {moved.w, jobs.Progress{}, []string{"change jobset"}},
		"with quota, job changed": {movedWhileAdmitted.w, jobs.Progress{Active: true}, nil},
		"waiting, job changed and ended": {moved.w, jobs.Progress{Outcome: &jobs.Outcome{Message: "m"}},
			[]string{"change status of jobset"}},
		"fields that users set on the Workload": {deactivated.w, jobs.Progress{}, nil},
		"progress": {waiting().admitted().w, jobs.Progress{Ready: true},
			[]string{"change status of jobset"}},
		"end reported already, no finalizer": {withoutFinalizers(waiting().is("Finished", metav1.ConditionTrue, "Failed",
			"m")), jobs.Progress{Outcome: &jobs.Outcome{Message: "m"}}, nil},
		"finished, job without pods": {
			waiting().is("Finished", metav1.ConditionTrue, "Failed", "m").w, jobs.Progress{Outcome: &jobs.Outcome{Message: "m"}},
			[]string{"change jobset"}},
		"finished, job with pods": {
			waiting().is("Finished", metav1.ConditionTrue, "Failed", "m").w,
			jobs.Progress{Active: true, Outcome: &jobs.Outcome{Message: "m"}}, nil},
		"deleted, job with pods":    {deleted(waiting().admitted()), jobs.Progress{Active: true}, nil},
		"deleted, job without pods": {deleted(waiting().admitted()), jobs.Progress{}, []string{"change jobset"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.seen.DeepCopy()
			if diff := cmp.Diff(tc.want, written(workloadWrites(tc.seen, described, tc.progress, minutely, now))); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.seen); diff != "" {
				t.Errorf("workloadWrites changed its argument (-before +after):\n%s", diff)
			}
		})
	}
}

func TestEqualQuantitiesAreNoChange(t *testing.T) {
	withCPU := func(cpu string) *kueue.Workload {
		w := waiting().w
		w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
		return w
	}
	if writes := workloadWrites(withCPU("1"), withCPU("1000m"), jobs.Progress{}, minutely, now); len(writes) != 0 {
		t.Errorf("writes = %v, want none", written(writes))
	}
}

func TestReclaimablePodsOnlyGrowWhileQuotaIsHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		w           workloadBuilder
		before, now int32
		want        int32
	}{
		"more":                      {waiting().admitted(), 0, 1, 1},
		"fewer with quota":          {waiting().admitted(), 2, 1, 2},
		"fewer without quota":       {waiting(), 2, 1, 1},
		"none without quota":        {waiting(), 2, 0, 0},
		"more than the pod set has": {waiting().admitted(), 0, 7, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.before > 0 {
				tc.w.w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: tc.before}}
			}
			report(tc.w.w, jobs.Progress{Active: true, Reclaimable: map[string]int32{"main": tc.now}}, minutely, now)
			var got int32
			for _, r := range tc.w.w.Status.ReclaimablePods {
				got += r.Count
			}
			if got != tc.want {
				t.Errorf("reclaimable pods = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAdmissionGatesAreCopiedWhileTheJobWaits(t *testing.T) {
	gated := func(by string) *kueue.Workload {
		w := waiting().w
		setGates(w, by)
		return w
	}
	for name, tc := range map[string]struct{ before, after string }{
		"added":   {"", "budget"},
		"changed": {"budget", "budget,review"},
		"removed": {"budget", ""},
	} {
		t.Run(name, func(t *testing.T) {
			writes := workloadWrites(gated(tc.before), gated(tc.after), jobs.Progress{}, minutely, now)
			if len(writes) != 1 || writes[0].Object().GetAnnotations()[kueue.AdmissionGatedByAnnotation] != tc.after {
				t.Errorf("writes = %v, want one with the gates %q", writes, tc.after)
			}
		})
	}
}

// TestShrinkEndsWhenThePodsAreGone: the Workload holds the requests of its former size until the pod set has no more
// pods than were granted, and while their number is unknown.
func TestShrinkEndsWhenThePodsAreGone(t *testing.T) {
	shrinking := func() *kueue.Workload {
		w := waiting().admitted().w
		w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](1)
		w.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "main",
			Resources: corev1.ResourceList{"cpu": resource.MustParse("2")}}}
		return w
	}
	for name, tc := range map[string]struct {
		pods map[string]int32
		ends bool
	}{
		"number unknown":     {nil, false},
		"one pod too many":   {map[string]int32{"main": 2}, false},
		"other pod set":      {map[string]int32{"other": 0}, false},
		"as many as granted": {map[string]int32{"main": 1}, true},
		"fewer than granted": {map[string]int32{"main": 0}, true},
	} {
		w := shrinking()
		report(w, jobs.Progress{Active: true, Pods: tc.pods}, minutely, now)
		if got := len(w.Status.ResourceRequests) == 0; got != tc.ends {
			t.Errorf("%s: resourceRequests = %v, want none: %v", name, w.Status.ResourceRequests, tc.ends)
		}
	}
	w := shrinking()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "because"}, now)
	report(w, jobs.Progress{}, minutely, now)
	if w.Status.Admission != nil || w.Status.ResourceRequests != nil {
		t.Errorf("evicted and stopped: admission %+v, resourceRequests %v, want neither", w.Status.Admission,
			w.Status.ResourceRequests)
	}
}

// TestPriorityOfAnElasticJobMayChangeWhileItRuns. Other jobs keep the priority that they were admitted with.
func TestPriorityOfAnElasticJobMayChangeWhileItRuns(t *testing.T) {
	for elastic, want := range map[bool]int32{true: 5, false: 0} {
		seen := waiting().admitted().w
		if elastic {
			metav1.SetMetaDataAnnotation(&seen.Spec.PodSets[0].Template.ObjectMeta, muster.MinReplicasAnnotation, "1")
		}
		described := seen.DeepCopy()
		described.Spec.Priority = ptr.To[int32](5)
		got := ptr.Deref(seen.Spec.Priority, 0)
		if changed := respecified(seen, described, jobs.Progress{}); changed != nil {
			got = *changed.Spec.Priority
		}
		if got != want {
			t.Errorf("elastic %v: priority = %d, want %d", elastic, got, want)
		}
	}
}

// TestLoweredElasticJobSaysSoOnItsWorkload: while the maximum of a running elastic job is below that of its pod set,
// which never shrinks, the Workload states it in an annotation. While it is above, the pod set grows to it. A job that
// has ended wants only the pods that still run.
func TestLoweredElasticJobSaysSoOnItsWorkload(t *testing.T) {
	for name, tc := range map[string]struct {
		rigid, waits, same, fixed bool
		before                    int32 // the annotation; 0 for none
		granted                   int32 // how many pods were admitted; 0 for all
		most                      int32 // the job's maximum now
		wanted                    int32 // what the job wants for now; 0 for its maximum
		left                      int32 // the pods of a job that has ended and that run on; 0 for one that has not
		needed                    int32 // the pods that run or are still to run; 0 if the job does not say so, -1 for none
		stops                     bool  // it has ended, and all its pods are being stopped
		unsaid                    bool  // its admission does not say how many pods it has
		reclaimed                 int32 // the pods that have given their quota back
		want                      string
		count                     int32 // that of the pod set; 0 for the one that it was admitted with
	}{
		"lowered":                                                     {most: 1, want: "1"},
		"lowered to its minimum":                                      {fixed: true, most: 1, want: "1"},
		"raised to what was admitted":                                 {before: 1, most: 2},
		"raised above what was admitted":                              {before: 1, most: 5, count: 5},
		"raised, and one pod has ended":                               {most: 5, needed: 4, count: 5, want: "4"},
		"raised, and no longer elastic":                               {most: 5, fixed: true},
		"raised, and its admission says no count":                     {most: 5, unsaid: true},
		"raised, and a pod has given its quota back":                  {most: 5, reclaimed: 1},
		"lowered to none":                                             {most: 0},
		"lowered to none, admitted with fewer pods than it asked for": {granted: 1, most: 0, want: "1"},
		"not elastic":                                                 {rigid: true, most: 1},
		"waiting":                                                     {waits: true, before: 1, most: 1},
		"no description, because the Workload is prebuilt or the job has a mistake": {same: true, before: 1,
			most: 2, want: "1"},
		"ended, and one pod still runs":                                  {most: 2, left: 1, want: "1"},
		"ended, and one pod still runs, without a description":           {same: true, left: 1, want: "1"},
		"a larger size has failed":                                       {most: 2, wanted: 1, want: "1"},
		"one of its pods has ended":                                      {most: 2, needed: 1, want: "1"},
		"none of its pods has ended":                                     {most: 2, needed: 2},
		"all of its pods have ended":                                     {most: 2, needed: -1, want: "1"},
		"one of its pods is to run again":                                {most: 2, before: 1, needed: 2},
		"a larger size is tried again":                                   {most: 2, before: 1},
		"ended, and all pods are being stopped":                          {most: 2, stops: true},
		"ended, all pods are being stopped, and others were not granted": {most: 2, granted: 1, stops: true, want: "1"},
		"ended, and all pods still run":                                  {most: 2, left: 2},
		"ended while lowered, and all pods still run":                    {most: 1, left: 2, want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := waiting()
			if !tc.waits {
				seen = seen.admitted()
			}
			if !tc.rigid {
				metav1.SetMetaDataAnnotation(&seen.w.Spec.PodSets[0].Template.ObjectMeta, muster.MinReplicasAnnotation, "1")
			}
			described := seen.w.DeepCopy()
			described.Spec.PodSets[0].Count = tc.most
			if tc.fixed {
				described.Spec.PodSets[0].Template.Annotations = nil
			}
			workload.Want(described, tc.wanted)
			if !tc.waits && !tc.unsaid {
				granted := seen.w.Spec.PodSets[0].Count
				if tc.granted > 0 {
					granted = tc.granted
				}
				seen.w.Status.Admission.PodSetAssignments[0].Count = &granted
			}
			if tc.reclaimed > 0 {
				seen.w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: seen.w.Spec.PodSets[0].Name, Count: tc.reclaimed}}
			}
			workload.Want(seen.w, tc.before)
			if tc.same {
				described = seen.w
			}
			progress := jobs.Progress{OutcomePending: tc.left > 0 || tc.stops,
				RunOn: map[string]int32{string(seen.w.Spec.PodSets[0].Name): tc.left}}
			if tc.needed != 0 {
				progress.Needed = map[string]int32{string(seen.w.Spec.PodSets[0].Name): max(0, tc.needed)}
			}
			got := seen.w
			if changed := respecified(seen.w, described, progress); changed != nil {
				got = changed
			}
			if got := got.Annotations[muster.MaxReplicasAnnotation]; got != tc.want {
				t.Errorf("the annotation is %q, want %q", got, tc.want)
			}
			want := seen.w.Spec.PodSets[0].Count
			if tc.count > 0 {
				want = tc.count
			}
			if !tc.waits && got.Spec.PodSets[0].Count != want {
				t.Errorf("the pod set has %d pods, want %d", got.Spec.PodSets[0].Count, want)
			}
		})
	}
}
