package jobs

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
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

var (
	jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	now        = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	earlier    = now.Add(-time.Hour)
)

var minutely = Backoff{Base: time.Minute, Max: time.Hour}

// workloadBuilder builds Workloads step by step.
type workloadBuilder struct{ w *kueue.Workload }

// waiting returns the Workload of jobWith(nil) with a pod set main of two pods.
func waiting() workloadBuilder {
	return workloadBuilder{workloadFor(jobWith(nil), jobSetKind, Description{PodSets: []kueue.PodSet{{Name: "main", Count: 2}}}, "q", priority{}, request{})}
}

func (b workloadBuilder) is(kind string, status metav1.ConditionStatus, reason, message string) workloadBuilder {
	b.w.Status.Conditions = append(b.w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(earlier)})
	return b
}

func (b workloadBuilder) admission(flavors map[corev1.ResourceName]kueue.ResourceFlavorReference) workloadBuilder {
	b.w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Flavors: flavors}}}
	return b
}

func (b workloadBuilder) admitted() workloadBuilder {
	return b.admission(nil).is("QuotaReserved", metav1.ConditionTrue, "QuotaReserved", "Quota reserved in ClusterQueue cq").
		is("Admitted", metav1.ConditionTrue, "Admitted", "The workload is admitted")
}

func (b workloadBuilder) evicted(reason string) workloadBuilder {
	return b.is("Evicted", metav1.ConditionTrue, reason, "because")
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
		t.Errorf("got %s", got)
	}
	if workloadName(jobSetKind, "pytorch", "another") == "jobset-pytorch-a88af" {
		t.Error("a later job of the same name has the same Workload")
	}
	long := workloadName(jobSetKind, strings.Repeat("x", 253), uid)
	if len(long) != 253 || long == workloadName(jobSetKind, strings.Repeat("x", 252), uid) {
		t.Errorf("a long name makes %d bytes: %s", len(long), long)
	}
}

func TestWorkloadNameIsAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,3}[a-z0-9])?`)
		name := strings.Join(rapid.SliceOfN(label, 130, 130).Draw(t, "labels"), ".")
		name = strings.TrimRight(name[:min(len(name), 253)], "-.")
		got := workloadName(jobSetKind, name, "u")
		if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 {
			t.Fatalf("%q of %q: %v", got, name, errs)
		}
	})
}

func TestWorkloadForDescribesTheJob(t *testing.T) {
	podSets := []kueue.PodSet{{Name: "main", Count: 3}}
	got := workloadFor(jobWith(inQueue("q")), jobSetKind, Description{PodSets: podSets}, "q", priority{5, "urgent", "kueue.x-k8s.io/workloadpriorityclass"}, request{})
	want := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: workloadName(jobSetKind, "j", "job-uid"), Namespace: "ns",
			Labels:     map[string]string{"kueue.x-k8s.io/job-uid": "job-uid"},
			Finalizers: []string{"kueue.x-k8s.io/resource-in-use"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "j", UID: "job-uid",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: podSets, Priority: ptr.To[int32](5), PriorityClassName: "urgent",
			PriorityClassSource: "kueue.x-k8s.io/workloadpriorityclass", Active: ptr.To(true)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGrantOf(t *testing.T) {
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	flavors := map[string]*kueue.ResourceFlavor{
		"a": {Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"zone": "a", "disk": "ssd"}}},
		"b": {Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"gpu": "h100"}, Tolerations: []corev1.Toleration{gpu}}},
	}
	both := map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "a", "memory": "a", "nvidia.com/gpu": "b"}
	for name, tc := range map[string]struct {
		w    *kueue.Workload
		want Admission
	}{
		"without a Workload the job waits":   {nil, Admission{Grant: Waiting}},
		"without an admission the job waits": {waiting().w, Admission{Grant: Waiting}},
		"quota that is only reserved starts nobody": {
			waiting().admission(both).is("QuotaReserved", metav1.ConditionTrue, "QuotaReserved", "").w, Admission{Grant: Waiting}},
		"an evicted job must stop while it holds quota": {waiting().admitted().evicted("Preempted").w, Admission{Grant: Stopping}},
		"an evicted job that gave its quota back waits": {waiting().evicted("Preempted").w, Admission{Grant: Waiting}},
		"an eviction that is over does not count": {
			waiting().admitted().is("Evicted", metav1.ConditionFalse, "QuotaReserved", "Previously: because").w,
			Admission{Grant: Admitted, PodSets: map[string]PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
				Labels: map[string]string{"kueue.x-k8s.io/podset": "main"}, NodeSelector: map[string]string{}}}}}},
		"a flavor that does not exist is named, and what is known is granted": {
			waiting().admission(map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "gone"}).is("Admitted", metav1.ConditionTrue, "Admitted", "").w,
			Admission{Grant: Admitted, MissingFlavor: "gone", PodSets: map[string]PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
				Labels: map[string]string{"kueue.x-k8s.io/podset": "main"}, NodeSelector: map[string]string{}}}}}},
		"an admitted job gets the labels and tolerations of all its flavors, each once": {
			waiting().admission(both).is("Admitted", metav1.ConditionTrue, "Admitted", "").w,
			Admission{Grant: Admitted, PodSets: map[string]PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
				Labels:       map[string]string{"kueue.x-k8s.io/podset": "main"},
				NodeSelector: map[string]string{"zone": "a", "disk": "ssd", "gpu": "h100"},
				Tolerations:  []corev1.Toleration{gpu}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if main, ok := tc.want.PodSets["main"]; ok {
				main.Template = &tc.w.Spec.PodSets[0].Template
				tc.want.PodSets["main"] = main
			}
			if diff := cmp.Diff(tc.want, grantOf(tc.w, flavors, nil), cmpopts.IgnoreFields(Admission{}, "UnreadySince")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartialAdmissionGrantsTheAssignedCount(t *testing.T) {
	w := waiting().admitted().w
	w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](1)
	if got := grantOf(w, nil, nil).PodSets["main"].Count; got != 1 {
		t.Errorf("got %d", got)
	}
}

func TestReport(t *testing.T) {
	const (
		readyMessage      = "All pods reached readiness and the workload is running"
		recoveringMessage = "At least one pod has failed, waiting for recovery"
	)
	quota := []string{"QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq", "Admitted=True Admitted: The workload is admitted"}
	and := func(lines ...string) []string { return append(append([]string(nil), quota...), lines...) }
	gaveBack := func(reason string, again string) []string {
		return []string{
			"QuotaReserved=False PendingEvaluation: because",
			"Admitted=False NoReservation: The workload has no reservation",
			"Evicted=True " + reason + ": because",
			"Requeued=" + again + " " + reason + ": because",
		}
	}
	for name, tc := range map[string]struct {
		w        workloadBuilder
		progress Progress
		want     []string
		keeps    bool // the admission
	}{
		"nothing is said of a job that waits":                 {waiting(), Progress{}, nil, false},
		"nor that it is ready, if it never was admitted":      {waiting(), Progress{Ready: true}, nil, false},
		"nothing is said of an admitted job whose pods start": {waiting().admitted(), Progress{Active: true}, quota, true},
		"the first time that all pods are ready is told":      {waiting().admitted(), Progress{Active: true, Ready: true}, and("PodsReady=True Started: " + readyMessage), true},
		"that one is not ready any more is told": {
			waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Started", readyMessage), Progress{Active: true},
			and("PodsReady=False WaitForRecovery: " + recoveringMessage), true},
		"and that all are again": {
			waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForRecovery", recoveringMessage), Progress{Active: true, Ready: true},
			and("PodsReady=True Recovered: " + readyMessage), true},
		"who stays ready is told nothing new": {
			waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Recovered", readyMessage), Progress{Ready: true},
			and("PodsReady=True Recovered: " + readyMessage), true},
		"one that cannot be started is finished": {waiting().admitted(), Progress{FailedToStart: "a clash"}, and("Finished=True FailedToStart: a clash"), true},
		"success":                                {waiting().admitted(), Progress{Outcome: &Outcome{Succeeded: true, Message: "all done"}}, and("Finished=True Succeeded: all done"), true},
		"failure":                                {waiting().admitted(), Progress{Outcome: &Outcome{Message: "boom"}}, and("Finished=True Failed: boom"), true},
		"a job that ends while it waits":         {waiting(), Progress{Outcome: &Outcome{Succeeded: true, Message: "m"}}, []string{"Finished=True Succeeded: m"}, false},
		"the end goes before an eviction": {waiting().admitted().evicted("Preempted"), Progress{Active: true, Outcome: &Outcome{Message: "m"}},
			and("Evicted=True Preempted: because", "Finished=True Failed: m"), true},
		"who finished stays so": {
			waiting().admitted().is("Finished", metav1.ConditionTrue, "Succeeded", "m"), Progress{Outcome: &Outcome{Message: "other"}},
			and("Finished=True Succeeded: m"), true},
		"an evicted job keeps its quota while pods run": {
			waiting().admitted().evicted("Preempted"), Progress{Active: true}, and("Evicted=True Preempted: because"), true},
		"a preempted job gives back and queues again":          {waiting().admitted().evicted("Preempted"), Progress{}, gaveBack("Preempted", "True"), false},
		"one that lost its nodes too":                          {waiting().admitted().evicted("NodeFailures"), Progress{}, gaveBack("NodeFailures", "True"), false},
		"a deactivated one gives back and does not":            {waiting().admitted().evicted("Deactivated"), Progress{}, gaveBack("Deactivated", "False"), false},
		"nor does one that was not ready in time, until later": {waiting().admitted().evicted("PodsReadyTimeout"), Progress{}, gaveBack("PodsReadyTimeout", "False"), false},
		"what was ready is forgotten with the quota": {
			waiting().admitted().evicted("Preempted").is("PodsReady", metav1.ConditionTrue, "Started", readyMessage), Progress{}, gaveBack("Preempted", "True"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.w.w
			report(w, tc.progress, minutely, now)
			if diff := cmp.Diff(tc.want, conditions(w), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if keeps := w.Status.Admission != nil; keeps != tc.keeps {
				t.Errorf("admission kept: %v, want %v", keeps, tc.keeps)
			}
		})
	}
}

func TestUnheldPodsAreReportedUntilTheyAreGone(t *testing.T) {
	w := &kueue.Workload{}
	report(w, Progress{Active: true}, minutely, now)
	if !workload.IsTrue(w, muster.UnheldCondition) {
		t.Error("pods run without quota, and nobody is told")
	}
	report(w, Progress{}, minutely, now)
	if len(w.Status.Conditions) != 0 {
		t.Errorf("they are gone, and yet: %v", w.Status.Conditions)
	}
}

func TestReportedConditionsHaveTimeAndGeneration(t *testing.T) {
	w := waiting().admitted().w
	w.Generation = 3
	report(w, Progress{Ready: true}, minutely, now)
	got := meta.FindStatusCondition(w.Status.Conditions, "PodsReady")
	if got == nil || got.ObservedGeneration != 3 || !got.LastTransitionTime.Time.Equal(now) {
		t.Errorf("got %+v", got)
	}
}

// written returns what the writes do, "verb name" each.
func written(writes []Write) []string {
	var out []string
	for _, w := range writes {
		out = append(out, string(w.verb)+" "+strings.Split(w.object.GetName(), "-")[0])
	}
	return out
}

// deleted is one that somebody deletes; free has no finalizer.
func deleted(b workloadBuilder) *kueue.Workload {
	b.w.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	return b.w
}

func free(b workloadBuilder) *kueue.Workload {
	b.w.Finalizers = nil
	return b.w
}

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
	if diff := cmp.Diff([]string{"change jobset"}, written(workloadWrites(promoted.w, urgent, Progress{Active: true}, minutely, now))); diff != "" {
		t.Errorf("another priority class of an admitted job (-want +got):\n%s", diff)
	}
	raised := waiting().admitted()
	raised.w.Spec.PriorityClassName, raised.w.Spec.PriorityClassSource, raised.w.Spec.Priority = "urgent", kueue.WorkloadPriorityClassSource, ptr.To[int32](-7)
	if diff := cmp.Diff([]string{"change jobset"}, written(workloadWrites(raised.w, urgent, Progress{Active: true}, minutely, now))); diff != "" {
		t.Errorf("another value of the priority class of an admitted job (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		seen     *kueue.Workload
		progress Progress
		want     []string
	}{
		"a missing Workload is made":                   {nil, Progress{}, []string{"create jobset"}},
		"not for a job that has ended":                 {nil, Progress{Outcome: &Outcome{}}, nil},
		"one that is in step is left alone":            {waiting().w, Progress{}, nil},
		"one that waits follows its job":               {moved.w, Progress{}, []string{"change jobset"}},
		"one that holds quota does not":                {movedWhileAdmitted.w, Progress{Active: true}, nil},
		"one whose job has ended does not":             {moved.w, Progress{Outcome: &Outcome{Message: "m"}}, []string{"change status of jobset"}},
		"what people set on the Workload itself stays": {deactivated.w, Progress{}, nil},
		"how the job fares is told in its status":      {waiting().admitted().w, Progress{Ready: true}, []string{"change status of jobset"}},
		"and told once":                                {free(waiting().is("Finished", metav1.ConditionTrue, "Failed", "m")), Progress{Outcome: &Outcome{Message: "m"}}, nil},
		"one that is finished is let go, if its job has no pods": {
			waiting().is("Finished", metav1.ConditionTrue, "Failed", "m").w, Progress{Outcome: &Outcome{Message: "m"}}, []string{"change jobset"}},
		"not before": {
			waiting().is("Finished", metav1.ConditionTrue, "Failed", "m").w, Progress{Active: true, Outcome: &Outcome{Message: "m"}}, nil},
		"one that is deleted counts while pods run": {deleted(waiting().admitted()), Progress{Active: true}, nil},
		"and is let go after them":                  {deleted(waiting().admitted()), Progress{}, []string{"change jobset"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.seen.DeepCopy()
			if diff := cmp.Diff(tc.want, written(workloadWrites(tc.seen, described, tc.progress, minutely, now))); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.seen); diff != "" {
				t.Errorf("what was seen was changed:\n%s", diff)
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
	if writes := workloadWrites(withCPU("1"), withCPU("1000m"), Progress{}, minutely, now); len(writes) != 0 {
		t.Errorf("wrote %v", written(writes))
	}
}

func TestReclaimablePodsOnlyGrowWhileQuotaIsHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		w           workloadBuilder
		before, now int32
		want        int32
	}{
		"more are told":                            {waiting().admitted(), 0, 1, 1},
		"fewer are not, while quota is held":       {waiting().admitted(), 2, 1, 2},
		"they are once it is given back":           {waiting(), 2, 1, 1},
		"and none at all is none":                  {waiting(), 2, 0, 0},
		"never more than there are in the pod set": {waiting().admitted(), 0, 7, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.before > 0 {
				tc.w.w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: tc.before}}
			}
			report(tc.w.w, Progress{Active: true, Reclaimable: map[string]int32{"main": tc.now}}, minutely, now)
			var got int32
			for _, r := range tc.w.w.Status.ReclaimablePods {
				got += r.Count
			}
			if got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
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
	for name, tc := range map[string]struct{ had, asks string }{
		"added":   {"", "budget"},
		"changed": {"budget", "budget,review"},
		"removed": {"budget", ""},
	} {
		t.Run(name, func(t *testing.T) {
			writes := workloadWrites(gated(tc.had), gated(tc.asks), Progress{}, minutely, now)
			if len(writes) != 1 || writes[0].object.GetAnnotations()[kueue.AdmissionGatedByAnnotation] != tc.asks {
				t.Errorf("writes %v", writes)
			}
		})
	}
}

// TestShrinkEndsWhenThePodsAreGone, not before, and not while their number is unknown.
func TestShrinkEndsWhenThePodsAreGone(t *testing.T) {
	shrinking := func() *kueue.Workload {
		w := waiting().admitted().w
		w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](1)
		w.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "main", Resources: corev1.ResourceList{"cpu": resource.MustParse("2")}}}
		return w
	}
	for name, tc := range map[string]struct {
		pods map[string]int32
		ends bool
	}{
		"nobody says":           {nil, false},
		"one has to go yet":     {map[string]int32{"main": 2}, false},
		"of another pod set":    {map[string]int32{"other": 0}, false},
		"as many as it may":     {map[string]int32{"main": 1}, true},
		"fewer, one has failed": {map[string]int32{"main": 0}, true},
	} {
		w := shrinking()
		report(w, Progress{Active: true, Pods: tc.pods}, minutely, now)
		if got := len(w.Status.ResourceRequests) == 0; got != tc.ends {
			t.Errorf("%s: it has %v", name, w.Status.ResourceRequests)
		}
	}
	w := shrinking()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "because"}, now)
	report(w, Progress{}, minutely, now)
	if w.Status.Admission != nil || w.Status.ResourceRequests != nil {
		t.Errorf("evicted and stopped, it has %+v, %v", w.Status.Admission, w.Status.ResourceRequests)
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
		if changed := respecified(seen, described, Progress{}); changed != nil {
			got = *changed.Spec.Priority
		}
		if got != want {
			t.Errorf("elastic %v: the priority is %d, want %d", elastic, got, want)
		}
	}
}

// TestLoweredElasticJobSaysSoOnItsWorkload by an annotation, since its pod sets stay as admitted, for as long as this
// is so.
func TestLoweredElasticJobSaysSoOnItsWorkload(t *testing.T) {
	for name, tc := range map[string]struct {
		rigid, waits, same, fixed bool
		said                      int32
		most                      int32
		want                      string
	}{
		"lowered":                    {most: 1, want: "1"},
		"lowered to its minimum":     {fixed: true, most: 1, want: "1"},
		"raised to what it was":      {said: 1, most: 2},
		"raised above":               {said: 1, most: 5},
		"nothing is left to ask for": {most: 0},
		"not elastic":                {rigid: true, most: 1},
		"it waits":                   {waits: true, said: 1, most: 1},
		"somebody else made it, or who asks is mistaken": {same: true, said: 1, most: 2, want: "1"},
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
			workload.Want(seen.w, tc.said)
			if tc.same {
				described = seen.w
			}
			got := seen.w
			if changed := respecified(seen.w, described, Progress{}); changed != nil {
				got = changed
			}
			if said := got.Annotations[muster.MaxReplicasAnnotation]; said != tc.want {
				t.Errorf("it says %q, want %q", said, tc.want)
			}
			if before := seen.w.Spec.PodSets[0].Count; !tc.waits && got.Spec.PodSets[0].Count != before {
				t.Errorf("its pod set has %d pods in place of %d", got.Spec.PodSets[0].Count, before)
			}
		})
	}
}

func TestPodSetIsElasticOnlyIfItsAPIResizes(t *testing.T) {
	asked := map[string]string{muster.MinReplicasAnnotation: "1", "mine": "2"}
	podSets := []kueue.PodSet{{Name: "a", Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: asked}}}, {Name: "b"}}
	fixSizes(podSets)
	if got := podSets[0].Template.Annotations; len(got) != 1 || got["mine"] != "2" {
		t.Errorf("the pod set says %v", got)
	}
	if len(asked) != 2 {
		t.Errorf("what the job says was changed: %v", asked)
	}
}
