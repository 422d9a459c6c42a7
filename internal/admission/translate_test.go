package admission

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
)

func TestAWorkloadInTheEnginesWords(t *testing.T) {
	selector := map[string]string{"zone": "a"}
	tolerations := []corev1.Toleration{{Key: "gpu"}}
	affinity := &corev1.NodeAffinity{}
	w := newWorkload("w", 3, quantities("cpu", "1500m", "memory", "1Gi", "nvidia.com/gpu", "8"))
	w.Spec.Priority = ptr.To[int32](-7)
	pod := &w.Spec.PodSets[0].Template.Spec
	pod.NodeSelector, pod.Tolerations, pod.Affinity = selector, tolerations, &corev1.Affinity{NodeAffinity: affinity}
	w.Spec.PodSets = append(w.Spec.PodSets, kueue.PodSet{Name: "empty", Count: 0})
	want := engine.WorkloadSet{Workload: engine.Workload{
		Key: engine.Key{Namespace: "ns", Name: "w"}, UID: "w-uid", Generation: 1, Queue: "q", Priority: -7, QueuedAt: now,
		PodSets: []engine.PodSet{
			{Name: "main", Count: 3, PerPod: map[string]int64{"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 8},
				NodeSelector: selector, Tolerations: tolerations, Affinity: affinity},
			{Name: "empty", PerPod: map[string]int64{}},
		},
	}}
	if diff := cmp.Diff(engine.Event(want), changed(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPerPod(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	of := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want map[string]int64
	}{
		"a pod that asks for nothing":                    {corev1.PodSpec{Containers: []corev1.Container{{}}}, map[string]int64{}},
		"cpu is in thousandths, all else in whole units": {corev1.PodSpec{Containers: []corev1.Container{of(quantities("cpu", "0.25", "memory", "1k"), nil)}}, map[string]int64{"cpu": 250, "memory": 1000}},
		"what is smaller than a unit counts as one":      {corev1.PodSpec{Containers: []corev1.Container{of(quantities("cpu", "0.0001", "memory", "1m"), nil)}}, map[string]int64{"cpu": 1, "memory": 1}},
		"what is beyond all bounds saturates":            {corev1.PodSpec{Containers: []corev1.Container{of(quantities("cpu", "1e30", "memory", "1e30"), nil)}}, map[string]int64{"cpu": math.MaxInt64, "memory": math.MaxInt64}},
		"zero is asked for as zero":                      {corev1.PodSpec{Containers: []corev1.Container{of(quantities("nvidia.com/gpu", "0"), nil)}}, map[string]int64{"nvidia.com/gpu": 0}},
		"a limit stands for a request":                   {corev1.PodSpec{Containers: []corev1.Container{of(nil, quantities("nvidia.com/gpu", "4"))}}, map[string]int64{"nvidia.com/gpu": 4}},
		"init containers count by their peak":            {corev1.PodSpec{InitContainers: []corev1.Container{of(quantities("cpu", "3"), nil)}, Containers: []corev1.Container{of(quantities("cpu", "1"), nil)}}, map[string]int64{"cpu": 3000}},
		"sidecars run beside the rest":                   {corev1.PodSpec{InitContainers: []corev1.Container{{RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "1")}}}, Containers: []corev1.Container{of(quantities("cpu", "1"), nil)}}, map[string]int64{"cpu": 2000}},
		"overhead is added":                              {corev1.PodSpec{Overhead: quantities("cpu", "500m"), Containers: []corev1.Container{of(quantities("cpu", "1"), nil)}}, map[string]int64{"cpu": 1500}},
	} {
		t.Run(name, func(t *testing.T) {
			got := podSetOf(&kueue.PodSet{Template: corev1.PodTemplateSpec{Spec: tc.spec}}).PerPod
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInactive(t *testing.T) {
	for name, tc := range map[string]struct {
		active *bool
		want   bool
	}{"unset is active": {nil, false}, "true is": {ptr.To(true), false}, "false is not": {ptr.To(false), true}} {
		w := newWorkload("w", 1, nil)
		w.Spec.Active = tc.active
		if got := workloadOf(w).Inactive; got != tc.want {
			t.Errorf("%s: inactive %v", name, got)
		}
	}
}

func TestRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		requests corev1.ResourceList
		want     string
	}{
		"what is well is not refused":     {quantities("cpu", "1", "nvidia.com/gpu", "0"), ""},
		"pods are not for users to ask":   {quantities("pods", "1"), `pod set main requests the resource "pods": the key is reserved for internal kueue use`},
		"nobody asks for less than zero":  {quantities("cpu", "-1"), "pod set main requests -1 of cpu: a request must not be negative"},
		"the first fault by name is told": {quantities("pods", "1", "memory", "-1", "cpu", "-2", "example.com/z", "-1"), "pod set main requests -2 of cpu: a request must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 30 { // not by the order of a map: another word each time is another write
				if got := refusal(newWorkload("w", 1, tc.requests)); got != tc.want {
					t.Fatalf("got %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func TestAClusterQueueInTheEnginesWords(t *testing.T) {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}, Spec: kueue.ClusterQueueSpec{
		Cohort: "lab", QueueingStrategy: kueue.StrictFIFO, StopPolicy: ptr.To(kueue.HoldAndDrain),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		ResourceGroups: []kueue.ResourceGroup{
			{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []kueue.FlavorQuotas{
				{Name: "spot", Resources: []kueue.ResourceQuota{
					{Name: "cpu", NominalQuota: resource.MustParse("1"), BorrowingLimit: ptr.To(resource.MustParse("500m")), LendingLimit: ptr.To(resource.MustParse("0"))},
					{Name: "memory", NominalQuota: resource.MustParse("1Gi")}}},
				{Name: "reserved", Resources: []kueue.ResourceQuota{{Name: "cpu"}, {Name: "memory"}}}}},
			{CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"}, Flavors: []kueue.FlavorQuotas{{Name: "h100"}}},
		}}}
	got := clusterQueueOf(q)
	open := quota.Limits{Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	memory := open
	memory.Nominal = 1 << 30
	want := engine.ClusterQueue{
		Name: "cq", Cohort: "lab", Strategy: engine.Strict, Held: true,
		Groups: []flavor.Group{
			{Resources: []string{"cpu", "memory"}, Flavors: []string{"spot", "reserved"}},
			{Resources: []string{"nvidia.com/gpu"}, Flavors: []string{"h100"}}},
		Quotas: quota.Quotas{
			{Flavor: "spot", Resource: "cpu"}:        {Nominal: 1000, Borrowing: 500, Lending: 0},
			{Flavor: "spot", Resource: "memory"}:     memory,
			{Flavor: "reserved", Resource: "cpu"}:    open,
			{Flavor: "reserved", Resource: "memory"}: open,
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(engine.ClusterQueue{}, "Namespaces")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamespacesOfAClusterQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"no selector admits nobody":      {nil, false},
		"an empty one admits everybody":  {&metav1.LabelSelector{}, true},
		"a label that the namespace has": {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, true},
		"one that it has not":            {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}, false},
		"one that makes no sense":        {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near"}}}, false},
	} {
		q := newClusterQueue("cq", "1")
		q.Spec.NamespaceSelector = tc.selector
		if got := clusterQueueOf(q).Namespaces.Matches(labels.Set{"team": "a"}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestStopped(t *testing.T) {
	for policy, want := range map[kueue.StopPolicy]bool{kueue.None: false, kueue.Hold: true, kueue.HoldAndDrain: true} {
		if got := stopped(&policy); got != want {
			t.Errorf("%s: %v", policy, got)
		}
	}
	if stopped(nil) {
		t.Error("no policy stops")
	}
}

func TestOtherObjectsInTheEnginesWords(t *testing.T) {
	finished := newWorkload("w", 1, nil)
	finished.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
	held := newLocalQueue("q", "cq")
	held.Spec.StopPolicy = ptr.To(kueue.Hold)
	taints := []corev1.Taint{{Key: "t"}}
	full := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f"}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"a": "b"}, NodeTaints: taints}}
	key := func(name string) engine.Key { return engine.Key{Namespace: "ns", Name: name} }
	for name, tc := range map[string]struct {
		object        client.Object
		want, deleted engine.Event
	}{
		"a Workload that has finished is gone": {finished, engine.WorkloadGone{Key: key("w")}, engine.WorkloadGone{Key: key("w")}},
		"LocalQueue":                           {held, engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: key("q"), ClusterQueue: "cq", Held: true}}, engine.LocalQueueDeleted{Key: key("q")}},
		"ResourceFlavor":                       {full, engine.FlavorSet{Flavor: engine.Flavor{Name: "f", NodeLabels: map[string]string{"a": "b"}, NodeTaints: taints}}, engine.FlavorDeleted{Name: "f"}},
		"Cohort": {&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: kueue.CohortSpec{ParentName: "p"}},
			engine.CohortSet{Cohort: engine.Cohort{Name: "c", Parent: "p", Quotas: quota.Quotas{}}}, engine.CohortDeleted{Name: "c"}},
		"Namespace": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"a": "b"}}},
			engine.NamespaceSet{Name: "ns", Labels: labels.Set{"a": "b"}}, engine.NamespaceDeleted{Name: "ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changed(tc.object)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.deleted, deleted(tc.object)); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
	if got := deleted(newClusterQueue("cq", "1")); got != (engine.ClusterQueueDeleted{Name: "cq"}) {
		t.Errorf("deleted ClusterQueue: %+v", got)
	}
}

func TestEveryWatchedKindHasAMeaning(t *testing.T) {
	for _, kind := range watched {
		object := kind.DeepCopyObject().(client.Object)
		if changed(object) == nil || deleted(object) == nil {
			t.Errorf("%T has none", kind)
		}
	}
}

func TestACountThatTheAdmissionDoesNotSayIsThatOfThePodSet(t *testing.T) {
	w := newWorkload("w", 5, nil)
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}}
	if got := admissionOf(w).PodSets[0].Count; got != 5 {
		t.Errorf("got %d", got)
	}
}

// TestAnAdmissionReadsAsItWasWritten: through the API and back nothing is lost, or
// the writer would not know its own hand.
func TestAnAdmissionReadsAsItWasWritten(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Min(0), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		given := &engine.Admission{ClusterQueue: "cq"}
		for i := range rapid.IntRange(0, 3).Draw(t, "pod sets") {
			a := engine.Assignment{PodSet: fmt.Sprintf("ps%d", i), Count: rapid.Int32Min(0).Draw(t, "count"), Flavors: map[string]string{}, Usage: map[string]int64{}}
			for _, name := range []string{"cpu", "memory", "nvidia.com/gpu", "pods"} {
				if rapid.Bool().Draw(t, "asks for "+name) {
					a.Flavors[name], a.Usage[name] = "f", amount.Draw(t, name)
				}
			}
			given.PodSets = append(given.PodSets, a)
		}
		var w, read kueue.Workload
		admit(&w, given, now)
		text, err := json.Marshal(&w)
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := admissionOf(&read); !got.Equal(given) {
			t.Fatalf("wrote %+v, read %+v", given, got)
		}
	})
}
