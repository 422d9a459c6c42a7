package slim

import (
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// TestInternedPodsDoNotMixValues: values are not mixed whatever users write, here strings that contain what looks like
// their end.
func TestInternedPodsDoNotMixValues(t *testing.T) {
	const index, workload = "batch.kubernetes.io/job-completion-index", "kueue.x-k8s.io/workload"
	annotated := func(annotations map[string]string) *corev1.Pod {
		pod := fullPod(ofJob)
		pod.Annotations = annotations
		return pod
	}
	theirs := stripped(t, annotated(map[string]string{index: "7", workload: "theirs"}))
	for _, forged := range []string{"7\x00" + workload + "\x00theirs",
		"7" + strconv.Itoa(len(workload)) + ":" + workload + "6:theirs"} {
		own := map[string]string{index: forged}
		if got := stripped(t, annotated(maps.Clone(own))).Annotations; !cmp.Equal(own, got) {
			t.Errorf("annotations %q were stripped to %q", own, got)
		}
	}
	if want := map[string]string{index: "7", workload: "theirs"}; !cmp.Equal(want, theirs.Annotations) {
		t.Errorf("annotations of the other pod = %q", theirs.Annotations)
	}
}

// TestInternedValuesAreEqual: for any values, also those made to be confused, the interned value equals the given one.
func TestInternedValuesAreEqual(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("a1:/\n\x00")), 0, 5, -1)
	texts := rapid.SliceOfN(text, 1, 4)
	byText := rapid.MapOfN(text, text, 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			words := byText.Draw(t, "map")
			wantSame(t, words, shareMap(words))
			finalizers := texts.Draw(t, "finalizers")
			wantSame(t, finalizers, shareFinalizers(finalizers))
			flavors, list := map[corev1.ResourceName]kueue.ResourceFlavorReference{}, corev1.ResourceList{}
			for name, flavor := range words {
				flavors[corev1.ResourceName(name)] = kueue.ResourceFlavorReference(flavor)
				list[corev1.ResourceName(name)] = admissiontest.Quantities("a", strconv.Itoa(len(flavor)))["a"]
			}
			wantSame(t, flavors, shareFlavors(flavors))
			wantSame(t, list, shareList(list))
			owners, containers, statuses := []metav1.OwnerReference{}, []corev1.Container{}, []corev1.ContainerStatus{}
			for _, name := range finalizers {
				of := text.Draw(t, "of")
				owners = append(owners, metav1.OwnerReference{Kind: name, Name: of, UID: types.UID(name)})
				policy := corev1.ContainerRestartPolicy(of)
				containers = append(containers,
					corev1.Container{Name: name, RestartPolicy: &policy, Resources: corev1.ResourceRequirements{Requests: list},
						Ports: []corev1.ContainerPort{{Name: of, HostIP: name}}})
				statuses = append(statuses, corev1.ContainerStatus{Name: name, RestartCount: int32(len(of))})
			}
			wantSame(t, owners, shareOwners(owners))
			wantSame(t, containers, shareContainers(containers))
			wantSame(t, statuses, shareStatuses(statuses))
		}
	})
}

func wantSame[T any](t *rapid.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("interned value (-own +shared):\n%s", diff)
	}
}

// requestingFor returns a Workload of one pod set whose container and init container request this amount.
func requestingFor(t *testing.T, cpu string) *kueue.Workload {
	asking := []corev1.Container{{Name: "c", Args: []string{"alone"},
		Resources: corev1.ResourceRequirements{Requests: admissiontest.Quantities("cpu", cpu),
			Limits: admissiontest.Quantities("cpu", cpu)}}}
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "w", Finalizers: []string{"f"}},
		Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{{Name: "main", Count: 1,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: asking, InitContainers: asking}}}}},
		Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{Type: kueue.WorkloadAdmitted,
			Status: metav1.ConditionTrue}},
			Admission: &kueue.Admission{ClusterQueue: "cq",
				PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", ResourceUsage: admissiontest.Quantities("cpu", cpu)}}}},
	}
	w = w.DeepCopy() // it needs its own containers and init containers
	if _, err := stripWorkload(w); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestASecondTransformDoesNotWriteSharedValues: an informer that lists by a watch transforms its objects twice. During
// the second transform others read the values shared with it, which must not be written.
func TestASecondTransformDoesNotWriteSharedValues(t *testing.T) {
	again, read := requestingFor(t, "1234m"), requestingFor(t, "1234m")
	pod, readPod := stripped(t, fullPod(ofJob)), stripped(t, fullPod(ofJob))
	once, oncePod := again.DeepCopy(), pod.DeepCopy()
	if &again.Spec.PodSets[0] != &read.Spec.PodSets[0] || &pod.Spec.Containers[0] != &readPod.Spec.Containers[0] {
		t.Fatal("the values are not shared")
	}
	var both sync.WaitGroup
	both.Go(func() {
		for range 100 {
			_, _ = stripWorkload(again) // never fails
			_, _ = stripPod(pod)
		}
	})
	both.Go(func() {
		for range 100 {
			read.DeepCopy()
			readPod.DeepCopy()
		}
	})
	both.Wait()
	if !reflect.DeepEqual(once, again) || !reflect.DeepEqual(oncePod, pod) {
		t.Errorf("transformed (-once +twice):\n%s%s", cmp.Diff(once, again), cmp.Diff(oncePod, pod))
	}
	if &again.Spec.PodSets[0] != &read.Spec.PodSets[0] || &pod.Spec.Containers[0] != &readPod.Spec.Containers[0] {
		t.Error("the values are no longer shared")
	}
}

// TestPodSetsSurviveInternerResets: a reset does not change interned pod sets, since others read them.
func TestPodSetsSurviveInternerResets(t *testing.T) {
	again, read := requestingFor(t, "4321m"), requestingFor(t, "4321m")
	lists := func() (out []uintptr) {
		spec := &read.Spec.PodSets[0].Template.Spec
		for _, asks := range []corev1.ResourceRequirements{spec.Containers[0].Resources, spec.InitContainers[0].Resources} {
			out = append(out, reflect.ValueOf(asks.Requests).Pointer(), reflect.ValueOf(asks.Limits).Pointer())
		}
		return out
	}
	before := lists()
	internedLists.mu.Lock()
	internedLists.values = nil
	internedLists.mu.Unlock()
	shareList(admissiontest.Quantities("cpu", "4321m"))
	if _, err := stripWorkload(again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, lists()); diff != "" {
		t.Errorf("requests of another Workload have changed:\n%s", diff)
	}
}

// TestEqualQuantitiesWithOtherSpellingsAreInterned: 1000m and 1, for example, are shared.
func TestEqualQuantitiesWithOtherSpellingsAreInterned(t *testing.T) {
	if first, other := requestingFor(t, "77"),
		requestingFor(t, "77000m"); &first.Spec.PodSets[0] != &other.Spec.PodSets[0] {
		t.Error("the pod sets are not shared")
	}
}

// TestLargeValuesAreNotKept: thousands of large strings must not stay in memory after their pods and Workloads are
// gone.
func TestLargeValuesAreNotKept(t *testing.T) {
	podSets := func(variable string, bytes int) []kueue.PodSet {
		return []kueue.PodSet{{Name: kueue.PodSetReference(variable), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", bytes)}}}}}}}}
	}
	var a podSetInterner
	a.intern(podSets("large", maxKeptPodSetBytes+1))
	if len(a.bySketch) != 0 || a.bytes != 0 {
		t.Errorf("%d values of %d bytes are interned, want none", len(a.bySketch), a.bytes)
	}
	for i := range 600 {
		// The second round replaces the values of the first.
		a.intern(podSets(strconv.Itoa(i%300), maxKeptPodSetBytes-1000-i))
		held := 0
		for _, known := range a.bySketch {
			held += known.bytes
		}
		if held != a.bytes || held > maxPodSetBytes || len(a.bySketch) == 0 {
			t.Fatalf("after %d values: %d are interned, of %d bytes, counted as %d", i, len(a.bySketch), held, a.bytes)
		}
	}
	var keys interner[int]
	if got := keys.intern(make([]byte, maxKeyBytes+1), 7); got != 7 || len(keys.values) != 0 {
		t.Errorf("got %d, want 7; %d keys are interned, want none", got, len(keys.values))
	}
}
