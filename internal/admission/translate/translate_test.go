package translate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

func TestTranslateWorkload(t *testing.T) {
	selector := map[string]string{"zone": "a"}
	tolerations := []corev1.Toleration{{Key: "gpu"}}
	affinity := &corev1.NodeAffinity{}
	w := admissiontest.NewWorkload("w", 3,
		admissiontest.Quantities("cpu", "1500m", "memory", "1Gi", "nvidia.com/gpu", "8"))
	w.Spec.Priority = ptr.To[int32](-7)
	pod := &w.Spec.PodSets[0].Template.Spec
	pod.NodeSelector, pod.Tolerations, pod.Affinity = selector, tolerations, &corev1.Affinity{NodeAffinity: affinity}
	w.Spec.PodSets = append(w.Spec.PodSets, kueue.PodSet{Name: "empty", Count: 0})
	want := engine.WorkloadSet{Workload: engine.Workload{
		Key: engine.Key{Namespace: "ns", Name: "w"}, UID: "w-uid", Generation: 1, Queue: "q", Priority: -7,
		QueuedAt: admissiontest.Now, Ready: true,
		Time: durations.Known{Kind: "ns//w/b92cd9ce391792ce", Wider: "ns"},
		PodSets: []engine.PodSet{
			{Name: "main", Count: 3, PerPod: map[string]int64{"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 8},
				NodeSelector: selector, Tolerations: tolerations, Affinity: affinity},
			{Name: "empty", PerPod: map[string]int64{}},
		},
	}}
	if diff := cmp.Diff([]engine.Event{want}, newTestTranslator().Changed(w, admissiontest.Now)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestInactive(t *testing.T) {
	for name, tc := range map[string]struct {
		active *bool
		want   bool
	}{"unset is active": {nil, false}, "true is": {ptr.To(true), false}, "false is not": {ptr.To(false), true}} {
		w := admissiontest.NewWorkload("w", 1, nil)
		w.Spec.Active = tc.active
		if got := newTestTranslator().Workload(w).Inactive; got != tc.want {
			t.Errorf("%s: Inactive = %v, want %v", name, got, tc.want)
		}
	}
}

func TestTranslateClusterQueue(t *testing.T) {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}, Spec: kueue.ClusterQueueSpec{
		Cohort: "lab", QueueingStrategy: kueue.StrictFIFO, StopPolicy: ptr.To(kueue.HoldAndDrain),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		ResourceGroups: []kueue.ResourceGroup{
			{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []kueue.FlavorQuotas{
				{Name: "spot", Resources: []kueue.ResourceQuota{
					{Name: "cpu", NominalQuota: resource.MustParse("1"), BorrowingLimit: ptr.To(resource.MustParse("500m")),
						LendingLimit: ptr.To(resource.MustParse("0"))},
					{Name: "memory", NominalQuota: resource.MustParse("1Gi")}}},
				{Name: "reserved", Resources: []kueue.ResourceQuota{{Name: "cpu"}, {Name: "memory"}}}}},
			{CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"}, Flavors: []kueue.FlavorQuotas{{Name: "h100"}}},
		}}}
	got := newTestTranslator().ClusterQueue(q)
	open := quota.Limits{Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	memory := open
	memory.Nominal = 1 << 30
	want := engine.ClusterQueue{
		Name: "cq", Cohort: "lab", Strategy: engine.Strict, Stopped: true,
		Groups: []flavor.Group{
			{Resources: []string{"cpu", "memory"}, Flavors: []string{"spot", "reserved"}},
			{Resources: []string{"nvidia.com/gpu"}, Flavors: []string{"h100"}}},
		Quotas: quota.Quotas{
			{Flavor: "spot", Resource: "cpu"}:        {Nominal: 1000, Borrowing: 500, Lending: 0},
			{Flavor: "spot", Resource: "memory"}:     memory,
			{Flavor: "reserved", Resource: "cpu"}:    open,
			{Flavor: "reserved", Resource: "memory"}: open,
		},
		Namespaces:  q.Spec.NamespaceSelector,
		Fungibility: flavor.Fungibility{NextBeforePreempting: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ClusterQueue (-want +got):\n%s", diff)
	}
}

func TestTranslatePreemptionPolicy(t *testing.T) {
	threshold := ptr.To[int32](5)
	for name, tc := range map[string]struct {
		given *kueue.ClusterQueuePreemption
		want  preempt.Policy
	}{
		"default": {nil, preempt.Policy{}},
		"different rules": {&kueue.ClusterQueuePreemption{
			WithinClusterQueue: kueue.PreemptionPolicyLowerOrNewerEqualPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny,
			BorrowWithinCohort: &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority,
				MaxPriorityThreshold: threshold},
		}, preempt.Policy{WithinQueue: preempt.LowerOrNewerEqualPriority, Reclaim: preempt.Any, WhileBorrowing: true,
			Threshold: threshold}},
		"Never": {&kueue.ClusterQueuePreemption{
			WithinClusterQueue: kueue.PreemptionPolicyNever, ReclaimWithinCohort: kueue.PreemptionPolicyLowerPriority,
			BorrowWithinCohort: &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever},
		}, preempt.Policy{Reclaim: preempt.LowerPriority}},
	} {
		if diff := cmp.Diff(tc.want, preemptionOf(tc.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestATerminatingQueueOrOneWithMissingChecksDoesNotAdmit(t *testing.T) {
	going := admissiontest.NewClusterQueue("cq", "1")
	going.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
	missing := admissiontest.NewClusterQueue("cq", "1")
	missing.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"budget"}
	tr := newTestTranslator()
	for name, q := range map[string]*kueue.ClusterQueue{"a terminating queue": going,
		"a queue with a missing check": missing} {
		if got := tr.Changed(q, admissiontest.Now)[0].(engine.ClusterQueueSet); got.Inactive == "" {
			t.Errorf("%s is active, want it inactive", name)
		}
	}
	active := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "budget"}}
	active.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue}}
	tr.Changed(missing, admissiontest.Now)
	again := tr.Changed(active, admissiontest.Now)
	if len(again) != 1 || again[0].(engine.ClusterQueueSet).Inactive != "" {
		t.Errorf("after the check was created: got events %+v, want the queue active", again)
	}
}

func TestALimitRangeRecountsTheWorkloadsOfItsNamespace(t *testing.T) {
	tr := newTestTranslator()
	tr.Changed(admissiontest.NewWorkload("w", 1, nil), admissiontest.Now)
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "defaults"},
		Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
				DefaultRequest: admissiontest.Quantities("cpu", "2")}}}}
	again := tr.Changed(limits, admissiontest.Now)
	if len(again) != 1 || again[0].(engine.WorkloadSet).PodSets[0].PerPod["cpu"] != 2000 {
		t.Errorf("events after the limit range was created = %+v, want the recounted workload", again)
	}
	if got := tr.Changed(limits, admissiontest.Now); len(got) != 0 {
		t.Errorf("events without a change = %+v, want none", got)
	}
	if again := tr.Deleted(limits); len(again) != 1 || len(again[0].(engine.WorkloadSet).PodSets[0].PerPod) != 0 {
		t.Errorf("events after the limit range was deleted = %+v, want the recounted workload", again)
	}
}

func TestStopped(t *testing.T) {
	for policy, want := range map[kueue.StopPolicy]bool{kueue.None: false, kueue.Hold: true, kueue.HoldAndDrain: true} {
		if got := Stopped(&policy); got != want {
			t.Errorf("stopped(%s) = %v, want %v", policy, got, want)
		}
	}
	if Stopped(nil) {
		t.Error("a queue without a policy is stopped")
	}
}

func TestTranslateOtherObjects(t *testing.T) {
	finished := admissiontest.NewWorkload("w", 1, nil)
	finished.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
	held := admissiontest.NewLocalQueue("q", "cq")
	held.Spec.StopPolicy = ptr.To(kueue.Hold)
	taints := []corev1.Taint{{Key: "t"}}
	full := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f"},
		Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"a": "b"}, NodeTaints: taints}}
	key := func(name string) engine.Key { return engine.Key{Namespace: "ns", Name: name} }
	for name, tc := range map[string]struct {
		object        client.Object
		want, deleted engine.Event
	}{
		"a finished Workload": {finished, engine.WorkloadGone{Key: key("w")}, engine.WorkloadGone{Key: key("w")}},
		"LocalQueue": {held,
			engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: key("q"), ClusterQueue: "cq", Stopped: true}},
			engine.LocalQueueDeleted{Key: key("q")}},
		"ResourceFlavor": {full, engine.FlavorSet{Flavor: engine.Flavor{Name: "f", NodeLabels: map[string]string{"a": "b"},
			NodeTaints: taints}}, engine.FlavorDeleted{Name: "f"}},
		"Cohort": {&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: kueue.CohortSpec{ParentName: "p"}},
			engine.CohortSet{Cohort: engine.Cohort{Name: "c", Parent: "p", Quotas: quota.Quotas{}}},
			engine.CohortDeleted{Name: "c"}},
		"Namespace": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"a": "b"}}},
			engine.NamespaceSet{Name: "ns", Labels: labels.Set{"a": "b"}}, engine.NamespaceDeleted{Name: "ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]engine.Event{tc.want}, newTestTranslator().Changed(tc.object, admissiontest.Now)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]engine.Event{tc.deleted}, newTestTranslator().Deleted(tc.object)); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
	if got := newTestTranslator().Deleted(admissiontest.NewClusterQueue("cq",
		"1")); got[0] != (engine.ClusterQueueDeleted{Name: "cq"}) {
		t.Errorf("events of a deleted ClusterQueue = %+v", got)
	}
}

func TestEveryWatchedKindIsTranslated(t *testing.T) {
	for _, kind := range Watched {
		object := kind.DeepCopyObject().(client.Object)
		newTestTranslator().Changed(object, admissiontest.Now) // panics without a translation
		newTestTranslator().Deleted(object)
	}
}

func TestAMissingAssignmentCountIsThatOfThePodSet(t *testing.T) {
	w := admissiontest.NewWorkload("w", 5, nil)
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}}
	if got := admissionOf(w).PodSets[0].Count; got != 5 {
		t.Errorf("count = %d, want 5", got)
	}
}

// TestWorkloadsWithoutReadinessDoNotBlockOthers: the timeout does not apply to them either, so others would wait
// forever.
func TestWorkloadsWithoutReadinessDoNotBlockOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		owned, deleted bool
		reported       metav1.ConditionStatus
		want           bool
	}{
		"no owner, no report":                   {want: true},
		"its controller reported it not ready":  {reported: metav1.ConditionFalse},
		"its controller reported it ready":      {reported: metav1.ConditionTrue, want: true},
		"owned by a job without a report yet":   {owned: true},
		"owned by a job that reported it ready": {owned: true, reported: metav1.ConditionTrue, want: true},
		"its job is deleted":                    {owned: true, deleted: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorkload("w", 1, nil)
			if tc.owned {
				w.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}}
			}
			if tc.deleted { // and kept until its pods are gone
				w.DeletionTimestamp, w.Status.Admission = ptr.To(metav1.NewTime(admissiontest.Now)),
					&kueue.Admission{ClusterQueue: "cq"}
			}
			if tc.reported != "" {
				w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadPodsReady, Status: tc.reported}}
			}
			for _, ev := range newTestTranslator().Changed(w, admissiontest.Now) {
				if got, ok := ev.(engine.WorkloadSet); ok && got.Ready != tc.want {
					t.Errorf("ready: %v, want %v", got.Ready, tc.want)
				} else if !ok {
					t.Errorf("got event %T, want WorkloadSet", ev)
				}
			}
		})
	}
}

// TestAWorkloadThatIsAdmittedAgainIsNoLongerBeingEvicted: the condition Evicted of its last admission stays until the
// new one is written. Until that is observed, what it was given must not be promised to others, and its pods are
// awaited.
func TestAWorkloadThatIsAdmittedAgainIsNoLongerBeingEvicted(t *testing.T) {
	for want, tc := range map[reason.Code]struct {
		block engine.Block
		cpu   string // of 8
	}{reason.WaitingForQuota: {engine.BlockNone, "8"}, reason.WaitingForPodsReady: {engine.BlockQueue, "4"}} {
		e, tr := engine.New(engine.Options{BlockUntilReady: tc.block}), newTestTranslator()
		again, other := admissiontest.NewWorkload("again", 1, admissiontest.Quantities("cpu", tc.cpu)),
			admissiontest.NewWorkload("other", 1, admissiontest.Quantities("cpu", "1"))
		again.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}}
		other.CreationTimestamp = metav1.NewTime(admissiontest.Now.Add(time.Second))
		workload.Evict(again, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, admissiontest.Now)
		for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
			admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), again, other} {
			for _, ev := range tr.Changed(o, admissiontest.Now) {
				e.Apply(ev)
			}
		}
		decided := e.Decide(admissiontest.Now)
		if len(decided) != 2 || decided[0].Key.Name != "again" || decided[0].Admit == nil || decided[1].Why.Code != want {
			t.Errorf("decided %+v, want the first admitted and the other to wait: %s", decided, want)
		}
	}
}

func TestReclaimedPodsHoldNoQuota(t *testing.T) {
	w := admissiontest.NewWorkload("w", 4, nil)
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: ptr.To[int32](4), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"},
		ResourceUsage: admissiontest.Quantities("cpu", "4")}}}
	w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 3}}
	if got := admissionOf(w).PodSets[0]; got.Count != 1 || got.Usage["cpu"] != 1000 {
		t.Errorf("pod set = %+v, want one pod of 1000", got)
	}
}

// newTestTranslator returns a translator that has observed nothing yet.
func newTestTranslator() *Translator {
	return New(podspec.Counting{}, QueuePolicy{}, 5*time.Second)
}

// TestAWorkloadThatIsBeingDeletedDoesNotQueue: a finalizer of another client may keep it for long. If it holds quota,
// it keeps that.
func TestAWorkloadThatIsBeingDeletedDoesNotQueue(t *testing.T) {
	w := admissiontest.NewWorkload("a", 2, admissiontest.Quantities("cpu", "1"))
	w.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
	if diff := cmp.Diff([]engine.Event{engine.WorkloadGone{Key: KeyOf(w)}},
		newTestTranslator().Changed(w, admissiontest.Now)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
	if held, holds := newTestTranslator().Changed(w, admissiontest.Now)[0].(engine.WorkloadSet); !holds || !held.Inactive {
		t.Error("the terminating Workload lost its quota, or is not inactive")
	}
}
