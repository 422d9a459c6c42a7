package replicas

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/podspec"
)

func TestShrinkingGroupKeepsTheMostAdvancedPods(t *testing.T) {
	waits := func(name string) *corev1.Pod { return podOf(name, 0).Pod }
	runs := func(name string) *corev1.Pod { return podOf(name, 0).running().Pod }
	pulls := func(name string) *corev1.Pod { return podOf(name, 0).bound().Pod }
	for what, test := range map[string]struct {
		count int32
		pods  []*corev1.Pod
		want  []int32
	}{
		"no pods":                {3, nil, []int32{0, 1, 2}},
		"as many pods as wanted": {2, []*corev1.Pod{runs("job-worker-0"), runs("job-worker-1")}, []int32{0, 1}},
		"equal pods: the first":  {1, []*corev1.Pod{runs("job-worker-1"), runs("job-worker-0")}, []int32{0}},
		"running before pending pods": {2,
			[]*corev1.Pod{waits("job-worker-0"), runs("job-worker-1"), runs("job-worker-2")}, []int32{1, 2}},
		"bound before unbound pods": {1, []*corev1.Pod{waits("job-worker-0"), pulls("job-worker-1")}, []int32{1}},
		"a succeeded pod": {1,
			[]*corev1.Pod{runs("job-worker-0"), podOf("job-worker-1", 0).ended(0, time.Minute).Pod}, []int32{1}},
		"pending before failed pods": {1,
			[]*corev1.Pod{podOf("job-worker-0", 0).ended(1, time.Minute).Pod, waits("job-worker-1")}, []int32{1}},
		"growth: the lowest free indices": {4, []*corev1.Pod{runs("job-worker-1"), runs("job-worker-4")},
			[]int32{0, 1, 2, 4}},
		"a terminating pod": {1,
			[]*corev1.Pod{podOf("job-worker-0", 0).running().deleted(time.Minute).Pod, waits("job-worker-1")}, []int32{1}},
		"pods of other owners": {1, []*corev1.Pod{runs("job-worker-x"), runs("job-worker-01"), runs("job-worker--1"),
			runs("other-worker-7"), runs("job-ps-3")}, []int32{0}},
		"none": {0, []*corev1.Pod{runs("job-worker-0")}, []int32{}},
	} {
		if got := KeepIndices("job", "worker", test.count, test.pods, nil); !slices.Equal(got, test.want) {
			t.Errorf("%s: kept indices = %v, want %v", what, got, test.want)
		}
	}
}

// TestShrinkingGroupKeepsPodsOnAssignedPlaces: a pod whose node is gone may be reported as running there for minutes.
func TestShrinkingGroupKeepsPodsOnAssignedPlaces(t *testing.T) {
	on := func(node string, pod *corev1.Pod) *corev1.Pod {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		return pod
	}
	runs := func(index int32, node string) *corev1.Pod {
		return on(node, podOf(Name("job", "worker", index), 0).running().Pod)
	}
	waits := func(index int32, node string) *corev1.Pod {
		return on(node, podOf(Name("job", "worker", index), 0).Pod)
	}
	at := func(nodes ...string) (out podspec.Places) {
		for _, node := range nodes {
			out = append(out, podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: 1})
		}
		return out
	}
	for what, test := range map[string]struct {
		pods   []*corev1.Pod
		places podspec.Places
		want   []int32
	}{
		"a pod whose node is gone": {[]*corev1.Pod{runs(0, "a"), runs(1, "b"), runs(2, "c")},
			at("a", "c"), []int32{0, 2}},
		"two pods on one place: the first": {[]*corev1.Pod{runs(0, "a"), runs(1, "a"), runs(2, "c")},
			at("a", "c"), []int32{0, 2}},
		"a running pod elsewhere before a pending one on its place": {[]*corev1.Pod{waits(0, "a"), runs(1, "b"),
			runs(2, "c")}, at("a", "c"), []int32{1, 2}},
		"a succeeded pod elsewhere": {[]*corev1.Pod{on("b",
			podOf("job-worker-0", 0).ended(0, time.Minute).Pod), runs(1, "c"), runs(2, "a")}, at("a", "c"), []int32{0, 1}},
		"a running before a pending pod on one place": {[]*corev1.Pod{waits(0, "a"), runs(1, "a"), runs(2, "c")},
			at("a", "c"), []int32{1, 2}},
	} {
		if got := KeepIndices("job", "worker", 2, test.pods, test.places); !slices.Equal(got, test.want) {
			t.Errorf("%s: kept indices = %v, want %v", what, got, test.want)
		}
	}
}

func TestKeepIndicesIgnoresOrderAndKeepsRunningPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		indices := rapid.SliceOfNDistinct(rapid.Int32Range(0, 20), 0, 12, rapid.ID[int32]).Draw(t, "indices")
		var pods []*corev1.Pod
		running := map[int32]bool{}
		for _, i := range indices {
			p := podOf(Name("job", "worker", i), 0)
			if rapid.Bool().Draw(t, "runs") {
				p, running[i] = p.running(), true
			}
			pods = append(pods, p.Pod)
		}
		count := rapid.Int32Range(0, 12).Draw(t, "count")
		got := KeepIndices("job", "worker", count, pods, nil)
		shuffled := rapid.Permutation(pods).Draw(t, "order")
		if again := KeepIndices("job", "worker", count, shuffled, nil); !slices.Equal(got, again) {
			t.Fatalf("indices for another order of the pods = %v, want %v", again, got)
		}
		if int32(len(got)) != count || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("indices = %v, want %d different ones in order", got, count)
		}
		var kept, waiting int32
		for _, i := range got {
			if running[i] {
				kept++
			} else {
				waiting++
			}
		}
		if int32(len(running)) > kept && waiting > 0 {
			t.Fatalf("of %d running pods %d are kept, and %d others", len(running), kept, waiting)
		}
	})
}

func TestGetWithGapsBetweenIndices(t *testing.T) {
	roster := Observe("job", []Group{{Name: "a", Count: 2}, {Name: "worker", Count: 3, Indices: []int32{1, 4, 7}}},
		func(string, int32) Record { return Record{} }, nil)
	for index, want := range map[int32]string{0: "", 1: "job-worker-1", 2: "", 4: "job-worker-4",
		7: "job-worker-7", 8: "", -1: ""} {
		got := ""
		if r := roster.Get("worker", index); r != nil {
			got = r.Name
		}
		if got != want {
			t.Errorf("Get(%d) = %q, want %q", index, got, want)
		}
	}
}

func TestRestartPolicyMaySelectFailures(t *testing.T) {
	pods := []*corev1.Pod{podOf("job-worker-0", 0).ended(1, time.Minute).Pod,
		podOf("job-worker-1", 0).ended(137, time.Minute).Pod}
	restart := Restart{OnFailure: true, Limit: 1, Retry: func(pod *corev1.Pod) bool {
		code, _, _ := Failure(pod)
		return code >= 128
	}}
	roster := Observe("job", []Group{{Name: "worker", Count: 2, Restart: restart}},
		func(string, int32) Record { return Record{} }, pods)
	if roster.Replicas[0].NeedsRestart || !roster.Replicas[1].NeedsRestart {
		t.Errorf("NeedsRestart = %v and %v, want only the second", roster.Replicas[0].NeedsRestart,
			roster.Replicas[1].NeedsRestart)
	}
}
