package podspec

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// soon fails the test if f does not return: to add one to 1e2147483647 takes practically forever.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("no end after 20 s")
	}
}

const extreme = "1e2147483647"

func TestExtremeRequestsOfAPodOnItsNodeAreAddedUp(t *testing.T) {
	one, huge := amounts("cpu", "1"), amounts("cpu", extreme)
	running := func(spec corev1.PodSpec, statuses ...corev1.ContainerStatus) *corev1.Pod {
		for i := range spec.Containers {
			spec.Containers[i].Name = string(rune('a' + i))
		}
		return &corev1.Pod{Spec: spec, Status: corev1.PodStatus{ContainerStatuses: statuses}}
	}
	inOverhead := podOf(with(one, nil))
	inOverhead.Overhead = huge
	ofPod := podOf(with(one, nil))
	ofPod.Resources = &corev1.ResourceRequirements{Requests: huge}
	ofInit := podOf(with(one, nil))
	ofInit.InitContainers = []corev1.Container{sidecar(huge, nil), with(one, nil)}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"the only container":    {running(podOf(with(huge, nil))), "1e30"},
		"one of two containers": {running(podOf(with(huge, nil), with(one, nil))), "1000000000000000000000000000001"},
		"below zero": {running(podOf(with(amounts("cpu", "-"+extreme), nil), with(one, nil))),
			"-999999999999999999999999999999"},
		"a zero":             {running(podOf(with(amounts("cpu", "0e2147483647"), nil), with(one, nil))), "1"},
		"init containers":    {running(ofInit), "1000000000000000000000000000001"},
		"overhead":           {running(inOverhead), "1000000000000000000000000000001"},
		"the pod as a whole": {running(ofPod), "1e30"},
		"what a container is granted": {running(podOf(with(one, nil)),
			corev1.ContainerStatus{Name: "a", AllocatedResources: huge}), "1e30"},
		"what a container has now": {running(podOf(with(one, nil)),
			corev1.ContainerStatus{Name: "a", Resources: &corev1.ResourceRequirements{Requests: huge}}), "1e30"},
	} {
		t.Run(name, func(t *testing.T) {
			soon(t, func() {
				got := RequestsOnNode(tc.pod)[corev1.ResourceCPU]
				if got.Cmp(resource.MustParse(tc.want)) != 0 {
					t.Errorf("cpu = %s, want %s", got.String(), tc.want)
				}
			})
		})
	}
}

func TestRequestsOnNodeOfAnOrdinaryPodAreItsOwn(t *testing.T) {
	pod := &corev1.Pod{Spec: podOf(with(amounts("cpu", "500m", "memory", "1Gi", "nvidia.com/gpu", "0"), nil))}
	if n := testing.AllocsPerRun(100, func() { RequestsOnNode(pod) }); n > 4 {
		t.Errorf("%v allocations, want those of one amount in thousandths: no copy", n)
	}
}

func TestExtremeQuantitiesAreCompared(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"1", "1", 0}, {"1000m", "1", 0}, {"1n", "2n", -1}, {"1Ki", "1", 1}, {"1e29", "1e28", 1},
		{extreme, extreme, 0}, {extreme, "1", 1}, {"1", extreme, -1}, {"-" + extreme, "1", -1}, {extreme, "-" + extreme, 1},
		{"0e2147483647", "1", -1}, {"0e2147483647", "0", 0}, {extreme, "1e2147483646", 0},
		{"1" + strings.Repeat("0", 50_000), "1", 1},
	} {
		soon(t, func() {
			a, b := resource.MustParse(tc.a), resource.MustParse(tc.b)
			if got := Compare(a, b); got != tc.want {
				t.Errorf("Compare(%.20s, %.20s) = %d, want %d", tc.a, tc.b, got, tc.want)
			}
			list := func(q resource.Quantity) corev1.PodSpec { return podOf(with(corev1.ResourceList{"cpu": q}, nil)) }
			if got := equality.Semantic.DeepEqual(list(a), list(b)); got != (tc.want == 0) {
				t.Errorf("specs with %.20s and %.20s are equal: %v", tc.a, tc.b, got)
			}
		})
	}
}

func TestExtremeQuantitiesAreFormatted(t *testing.T) {
	for given, want := range map[string]string{
		"1.5Gi": "1536Mi", "500m": "500m", "0": "0", "1n": "1n", extreme: "1e30", "0e2147483647": "0",
		"-1" + strings.Repeat("0", 50_000): "-1e30",
	} {
		soon(t, func() {
			if got := Text(resource.MustParse(given)); got != want {
				t.Errorf("Text(%.20s) = %.40s, want %s", given, got, want)
			}
		})
	}
}

func TestTextsOfUsersAreParsed(t *testing.T) {
	for _, text := range []string{"1", "500m", "1.5Gi", " 2 ", "1E", "2Ei", "1e-100", "1E+100", "1e2"} {
		if q, ok := Parse(text); !ok || !q.Equal(resource.MustParse(strings.TrimSpace(text))) {
			t.Errorf("Parse(%q) = %s, %v, want what the API server makes of it", text, q.String(), ok)
		}
	}
	for _, text := range []string{"", "one", "1e", "1 Gi", "1e-2147483647", "1E+2147483647", "1e1000",
		"1" + strings.Repeat("0", 100)} {
		soon(t, func() {
			if _, ok := Parse(text); ok {
				t.Errorf("Parse(%q) accepts it", text)
			}
		})
	}
}
