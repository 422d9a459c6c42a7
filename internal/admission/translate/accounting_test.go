package translate

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/admission/admissiontest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

func newLimitRange(name string, item corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
}

func newRuntimeClass(name, cpu string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name},
		Overhead: &nodev1.Overhead{PodFixed: admissiontest.Quantities("cpu", cpu)}}
}

func TestRequestsFollowLimitRangesAndRuntimeClasses(t *testing.T) {
	defaultRequest := func(cpu string) corev1.LimitRangeItem {
		return corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: admissiontest.Quantities("cpu", cpu)}
	}
	w := admissiontest.NewWorkload("w", 2, nil)
	w.Spec.PodSets[0].Template.Spec.RuntimeClassName = ptr.To("kata")
	a := newAccountant(podspec.Counting{})
	for _, step := range []struct {
		name    string
		happen  func() bool
		changed bool
		want    map[string]int64
		refused string // part of the reason
	}{
		{"missing runtime class", func() bool { return false }, false, map[string]int64{}, `Not found: "kata"`},
		{"new runtime class", func() bool { return a.setRuntimeClass(newRuntimeClass("kata", "100m")) }, true,
			map[string]int64{"cpu": 100}, ""},
		{"unchanged runtime class", func() bool { return a.setRuntimeClass(newRuntimeClass("kata", "100m")) }, false,
			map[string]int64{"cpu": 100}, ""},
		{"larger overhead", func() bool { return a.setRuntimeClass(newRuntimeClass("kata", "200m")) }, true,
			map[string]int64{"cpu": 200}, ""},
		{"new limit range", func() bool { return a.setLimitRange(newLimitRange("b", defaultRequest("1"))) }, true,
			map[string]int64{"cpu": 1200}, ""},
		{"unchanged limit range", func() bool { return a.setLimitRange(newLimitRange("b", defaultRequest("1"))) }, false,
			map[string]int64{"cpu": 1200}, ""},
		{"second limit range, which sorts before the first",
			func() bool { return a.setLimitRange(newLimitRange("a", defaultRequest("2"))) }, true,
			map[string]int64{"cpu": 2200}, ""},
		{"limit range of volumes only", func() bool {
			return a.setLimitRange(newLimitRange("c", corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim}))
		}, false, map[string]int64{"cpu": 2200}, ""},
		{"default request beyond the maximum", func() bool {
			return a.setLimitRange(newLimitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer,
				Min: admissiontest.Quantities("cpu", "2"), DefaultRequest: admissiontest.Quantities("memory", "1")}))
		}, true, map[string]int64{"cpu": 1200, "memory": 1}, "resources didn't satisfy LimitRange constraints: "},
		{"limit range without limits of pods", func() bool {
			return a.setLimitRange(newLimitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim}))
		}, true, map[string]int64{"cpu": 1200}, ""},
		{"deleted limit range", func() bool { return a.deleteLimitRange("ns", "b") }, true, map[string]int64{"cpu": 200}, ""},
		{"second deletion of the limit range", func() bool { return a.deleteLimitRange("ns", "b") }, false,
			map[string]int64{"cpu": 200}, ""},
		{"deleted runtime class", func() bool { return a.deleteRuntimeClass("kata") }, true, map[string]int64{}, "Not found"},
		{"second deletion of the runtime class", func() bool { return a.deleteRuntimeClass("kata") }, false,
			map[string]int64{}, "Not found"},
	} {
		t.Run(step.name, func(t *testing.T) {
			if got := step.happen(); got != step.changed {
				t.Errorf("changed = %v, want %v", got, step.changed)
			}
			podSets, refused := a.account(w)
			if diff := cmp.Diff(step.want, podSets[0].PerPod); diff != "" {
				t.Errorf("requests per pod (-want +got):\n%s", diff)
			}
			if step.refused == "" && refused != "" || !strings.Contains(refused, step.refused) {
				t.Errorf("refused = %q, want it to contain %q", refused, step.refused)
			}
		})
	}
}

func TestALimitRangeAppliesToItsNamespaceOnly(t *testing.T) {
	a := newAccountant(podspec.Counting{})
	elsewhere := newLimitRange("lr",
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: admissiontest.Quantities("cpu", "1")})
	elsewhere.Namespace = "elsewhere"
	a.setLimitRange(elsewhere)
	if podSets, _ := a.account(admissiontest.NewWorkload("w", 1, nil)); len(podSets[0].PerPod) != 0 {
		t.Errorf("requests per pod = %v, want none in another namespace", podSets[0].PerPod)
	}
}

func TestEveryPodSetIsCountedAndChecked(t *testing.T) {
	w := admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "1"))
	w.Spec.PodSets = append(w.Spec.PodSets, *w.Spec.PodSets[0].DeepCopy(), *w.Spec.PodSets[0].DeepCopy())
	for i, name := range []string{"main", "idle", "wrong"} {
		w.Spec.PodSets[i].Name = kueue.PodSetReference(name)
	}
	w.Spec.PodSets[1].Count = 0
	w.Spec.PodSets[2].Template.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "-1")
	podSets, refused := newAccountant(podspec.Counting{}).account(w)
	if podSets[0].Name != "main" || podSets[0].PerPod["cpu"] != 1000 || podSets[1].Count != 0 ||
		podSets[2].Name != "wrong" {
		t.Errorf("pod sets = %+v, want main, one without pods, and wrong", podSets)
	}
	want := `resources validation failed: spec.podSets[2].template.spec.containers[0]: Invalid value: ["cpu"]: requests must not be negative (container "c" of pod set "wrong" has -1)`
	if refused != want {
		t.Errorf("refused = %q, want %q", refused, want)
	}
}

// TestOnlyJobsThatSaySoAreElastic: with a minimum alone, as for a partial admission, a job that runs keeps its size.
func TestOnlyJobsThatSaySoAreElastic(t *testing.T) {
	partial, fixed := admissiontest.ElasticWorkload("w", 1, 4), admissiontest.ElasticWorkload("w", 1, 4)
	partial.Spec.PodSets[0].Template.Annotations, fixed.Spec.PodSets[0].MinCount = nil, nil
	for w, want := range map[*kueue.Workload]bool{admissiontest.ElasticWorkload("w", 1, 4): true,
		partial: false, fixed: false} {
		if podSets, _ := newAccountant(podspec.Counting{}).account(w); (podSets[0].Elastic != 0) != want {
			t.Errorf("the exponent of %+v is %v, want it elastic: %v", w.Spec.PodSets[0], podSets[0].Elastic, want)
		}
	}
}

func TestPodCounts(t *testing.T) {
	w := admissiontest.NewWorkload("w", 4, admissiontest.Quantities("cpu", "1"))
	w.Spec.PodSets[0].MinCount = ptr.To[int32](2)
	for name, tc := range map[string]struct {
		reported []kueue.ReclaimablePod
		want     int32
	}{
		"no pod has ended":          {nil, 0},
		"some pods have ended":      {[]kueue.ReclaimablePod{{Name: "other", Count: 4}, {Name: "main", Count: 3}}, 3},
		"more ended pods than pods": {[]kueue.ReclaimablePod{{Name: "main", Count: 9}}, 4},
		"a negative number":         {[]kueue.ReclaimablePod{{Name: "main", Count: -1}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w.Status.ReclaimablePods = tc.reported
			podSets, _ := newAccountant(podspec.Counting{}).account(w)
			if got := podSets[0]; got.Reclaimable != tc.want || got.MinCount != 2 || got.Count != 4 {
				t.Errorf("got %d of %d pods (minimum %d) reclaimable, want %d of 4 (minimum 2)", got.Reclaimable, got.Count,
					got.MinCount, tc.want)
			}
		})
	}
}

func TestRequestsAreCountedAsConfigured(t *testing.T) {
	counting := CountingOf(&config.Resources{
		ExcludeResourcePrefixes: []string{"example.com/"},
		Transformations: []config.ResourceTransformation{
			{Input: "memory", Strategy: ptr.To(config.Replace), Outputs: admissiontest.Quantities("credits", "2")},
			{Input: "cpu", MultiplyBy: "example.com/gpu", Outputs: admissiontest.Quantities("credits", "1")},
		}})
	w := admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "1500m", "memory", "3", "example.com/gpu", "4"))
	podSets, _ := newAccountant(counting).account(w)
	if diff := cmp.Diff(map[string]int64{"cpu": 1500, "credits": 12}, podSets[0].PerPod); diff != "" {
		t.Errorf("requests per pod (-want +got):\n%s", diff)
	}
}

func TestNamesRuntimeClass(t *testing.T) {
	w := admissiontest.NewWorkload("w", 1, nil)
	w.Spec.PodSets = append(w.Spec.PodSets, *w.Spec.PodSets[0].DeepCopy())
	w.Spec.PodSets[1].Template.Spec.RuntimeClassName = ptr.To("kata")
	if !namesRuntimeClass(w, "kata") || namesRuntimeClass(w, "gvisor") ||
		namesRuntimeClass(admissiontest.NewWorkload("w", 1, nil), "") {
		t.Error("namesRuntimeClass is not true exactly for Workloads that name the class")
	}
}

// BenchmarkAccount measures the accounting of each event of a Workload before the engine gets it.
func BenchmarkAccount(b *testing.B) {
	plain := admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "1"))
	usual := admissiontest.NewWorkload("w", 8,
		admissiontest.Quantities("cpu", "500m", "memory", "64Gi", "nvidia.com/gpu", "8"))
	usual.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Limits = admissiontest.Quantities("memory", "64Gi",
		"nvidia.com/gpu", "8")
	ranged := newAccountant(podspec.Counting{})
	ranged.setLimitRange(newLimitRange("lr", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer,
		Max: admissiontest.Quantities("cpu", "64"), Min: admissiontest.Quantities("cpu", "100m"),
		Default: admissiontest.Quantities("cpu", "4"), DefaultRequest: admissiontest.Quantities("cpu", "1")}))
	b.Run("as written/one resource", func(b *testing.B) {
		a := newAccountant(podspec.Counting{})
		b.ReportAllocs()
		for b.Loop() {
			a.account(plain)
		}
	})
	b.Run("as written/three resources and limits", func(b *testing.B) {
		a := newAccountant(podspec.Counting{})
		b.ReportAllocs()
		for b.Loop() {
			a.account(usual)
		}
	})
	b.Run("with a limit range", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ranged.account(usual)
		}
	})
}

func TestNodesAreChargedPodRequestsWhateverCountsAgainstQuota(t *testing.T) {
	w := admissiontest.NewWorkload("w", 1, admissiontest.Quantities("cpu", "1", "example.com/mig", "2"))
	if got := newTestTranslator().Workload(w).PodSets[0]; got.OfNode != nil || got.PerPod["example.com/mig"] != 2 {
		t.Errorf("without a transformation: got %+v, want the requests as written", got)
	}
	counting := podspec.Counting{ExcludePrefixes: []string{"cpu", "example.com/mig"},
		Transformations: map[corev1.ResourceName]podspec.Transformation{
			"example.com/mig": {Replace: true, Outputs: admissiontest.Quantities("example.com/memory", "5")}}}
	got := New(counting, QueuePolicy{}, time.Second).Workload(w).PodSets[0]
	if diff := cmp.Diff(map[string]int64{"example.com/memory": 10}, got.PerPod); diff != "" {
		t.Errorf("requests against quota (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"cpu": 1000, "example.com/mig": 2}, got.OfNode); diff != "" {
		t.Errorf("requests of a node (-want +got):\n%s", diff)
	}
}

// TestPodsPlacedByNodeLabels: with JobSet's node-selector strategy, pods may go to any node that has the label.
func TestPodsPlacedByNodeLabels(t *testing.T) {
	w := admissiontest.NewWorkload("w", 1, nil)
	podSets, _ := newAccountant(podspec.Counting{}).account(w)
	if podSets[0].Unpinned {
		t.Error("pods of no JobSet are unpinned, want them pinned")
	}
	podspec.RequireLabel(&w.Spec.PodSets[0].Template.Spec, jobset.NamespacedJobKey, []string{"default_w-0"})
	if podSets, _ = newAccountant(podspec.Counting{}).account(w); !podSets[0].Unpinned {
		t.Error("pods for which users have labeled nodes are pinned, want them unpinned")
	}
}

// TestPodsWithANodeName: a pod with a nodeName gets no other node, whatever its selectors say.
func TestPodsWithANodeName(t *testing.T) {
	inRack := &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpIn,
				Values: []string{"r1"}}}}}}}
	w := admissiontest.NewWorkload("w", 1, nil)
	w.Spec.PodSets[0].Template.Spec.NodeName = "n1"
	w.Spec.PodSets[0].Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: inRack}
	podSets, _ := newAccountant(podspec.Counting{}).account(w)
	if podSets[0].NodeName != "n1" {
		t.Errorf("node name = %q, want n1", podSets[0].NodeName)
	}
	if diff := cmp.Diff(inRack, podSets[0].Affinity); diff != "" {
		t.Errorf("affinity besides the node name (-want +got):\n%s", diff)
	}
}
