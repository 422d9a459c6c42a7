package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// amounts returns a list of resources from alternating names and quantities.
func amounts(pairs ...string) corev1.ResourceList {
	if len(pairs) == 0 {
		return nil
	}
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// with returns a container with the requests and limits.
func with(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func sidecar(requests, limits corev1.ResourceList) corev1.Container {
	c := with(requests, limits)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func podOf(containers ...corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{Containers: containers}
}

func limitRange(name string, items ...corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: items}}
}

func defaults(limits, requests corev1.ResourceList) corev1.LimitRangeItem {
	return corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: limits, DefaultRequest: requests}
}

func runtimeClass(name string, overhead corev1.ResourceList,
	scheduling *nodev1.Scheduling) map[string]*nodev1.RuntimeClass {
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Scheduling: scheduling}
	if overhead != nil {
		class.Overhead = &nodev1.Overhead{PodFixed: overhead}
	}
	return map[string]*nodev1.RuntimeClass{name: class}
}

func ranges(all ...*corev1.LimitRange) Environment { return Environment{LimitRanges: all} }

func TestStoredRequests(t *testing.T) {
	kata := func(spec corev1.PodSpec) corev1.PodSpec {
		spec.RuntimeClassName = ptr.To("kata")
		return spec
	}
	for name, tc := range map[string]struct {
		site Environment
		spec corev1.PodSpec
		want corev1.ResourceList
	}{
		"a limit and a default request": {
			ranges(limitRange("lr", defaults(amounts("cpu", "8"), amounts("cpu", "1")))),
			podOf(with(nil, amounts("cpu", "4"))), amounts("cpu", "4")},
		"neither a request nor a limit": {
			ranges(limitRange("lr", defaults(amounts("cpu", "8"), amounts("cpu", "1")))),
			podOf(with(nil, nil)), amounts("cpu", "1")},
		"a request": {
			ranges(limitRange("lr", defaults(amounts("cpu", "8"), amounts("cpu", "1")))),
			podOf(with(amounts("cpu", "3"), nil)), amounts("cpu", "3")},
		"a default limit without a default request": {
			ranges(limitRange("lr", defaults(amounts("cpu", "8"), nil))),
			podOf(with(nil, nil)), amounts("cpu", "8")},
		"defaults of init containers and sidecars": {
			ranges(limitRange("lr", defaults(nil, amounts("cpu", "1")))),
			corev1.PodSpec{InitContainers: []corev1.Container{sidecar(nil, nil), with(amounts("cpu", "7"), nil)},
				Containers: []corev1.Container{with(nil, nil), with(nil, nil)}},
			amounts("cpu", "8")},
		"several ranges: the first by name that has a default": {
			ranges(limitRange("a", defaults(nil, amounts("memory", "1Gi"))),
				limitRange("b", defaults(nil, amounts("cpu", "2", "memory", "2Gi"))),
				limitRange("c", defaults(nil, amounts("cpu", "3")))),
			podOf(with(nil, nil)), amounts("cpu", "2", "memory", "1Gi")},
		"ranges of pods and of volume claims": {
			ranges(limitRange("lr", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Default: amounts("cpu", "1")},
				corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, DefaultRequest: amounts("storage", "1Gi")})),
			podOf(with(amounts("memory", "1"), nil)), amounts("memory", "1")},
		"a runtime class with overhead": {
			Environment{RuntimeClasses: runtimeClass("kata", amounts("cpu", "250m", "memory", "120Mi"), nil)},
			kata(podOf(with(amounts("cpu", "1"), nil))), amounts("cpu", "1250m", "memory", "120Mi")},
		"a pod with overhead": {
			Environment{RuntimeClasses: runtimeClass("kata", amounts("cpu", "250m"), nil)},
			kata(corev1.PodSpec{Overhead: amounts("cpu", "1"), Containers: []corev1.Container{with(amounts("cpu", "1"), nil)}}),
			amounts("cpu", "2")},
		"a runtime class without overhead": {
			Environment{RuntimeClasses: runtimeClass("kata", nil, nil)},
			kata(podOf(with(amounts("cpu", "1"), nil))), amounts("cpu", "1")},
		"resources of the pod": {
			Environment{}, corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "4")},
				Containers: []corev1.Container{with(amounts("cpu", "1", "example.com/gpu", "2"), nil)}},
			amounts("cpu", "4", "example.com/gpu", "2")},
		"a limit of the pod without requests": {
			Environment{}, corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "4")},
				Containers: []corev1.Container{with(nil, nil)}},
			amounts("cpu", "4")},
		"a limit of the pod and requests of its containers": {
			Environment{}, corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "4")},
				Containers: []corev1.Container{with(amounts("cpu", "1"), nil)}},
			amounts("cpu", "1")},
		"defaults of containers and a limit of the pod": {
			ranges(limitRange("lr", defaults(nil, amounts("cpu", "1")))),
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "4")},
				Containers: []corev1.Container{with(nil, nil)}},
			amounts("cpu", "1")},
		"huge pages of the pod": {
			Environment{}, corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "1")},
				Containers: []corev1.Container{with(nil, amounts("hugepages-2Mi", "4Mi"))}},
			amounts("cpu", "1", "hugepages-2Mi", "4Mi")},
		"requests finer than a thousandth, rounded up in each container": {
			Environment{}, podOf(with(amounts("cpu", "0.0001"), nil), with(amounts("cpu", "0.0001"), nil)),
			amounts("cpu", "2m")},
		"extremely large requests": {
			Environment{}, podOf(with(amounts("cpu", "1e2147483647"), nil), with(amounts("cpu", "1"), nil)),
			amounts("cpu", "1000000000000000000000000000001")},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.spec.DeepCopy()
			got := Total(tc.site.Stored(&tc.spec))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.String(), tc.spec.String()); diff != "" {
				t.Errorf("the given spec was changed:\n%s", diff)
			}
		})
	}
}

func TestRuntimeClassScheduling(t *testing.T) {
	own, shared := corev1.Toleration{Key: "own"}, corev1.Toleration{Key: "sandbox", Operator: corev1.TolerationOpExists}
	site := Environment{RuntimeClasses: runtimeClass("kata", nil, &nodev1.Scheduling{
		NodeSelector: map[string]string{"sandbox": "kata"}, Tolerations: []corev1.Toleration{shared, shared}})}
	spec := &corev1.PodSpec{RuntimeClassName: ptr.To("kata"), NodeSelector: map[string]string{"zone": "a"},
		Tolerations: append(make([]corev1.Toleration, 0, 8), own)}
	before := spec.DeepCopy()
	got := site.Stored(spec)
	if diff := cmp.Diff(map[string]string{"zone": "a", "sandbox": "kata"}, got.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Toleration{own, shared}, got.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, spec); diff != "" || spec.Tolerations[:2][1].Key != "" {
		t.Errorf("the given spec was changed:\n%s", diff)
	}
}

func TestStoredReturnsAnEqualSpecUncopied(t *testing.T) {
	spec := podOf(with(amounts("cpu", "500m", "memory", "1Gi"), amounts("memory", "1Gi")), with(amounts("cpu", "1"), nil))
	if got := (Environment{}).Stored(&spec); got != &spec {
		t.Error("an equal spec was copied, want the given one")
	}
}

func TestNormalized(t *testing.T) {
	for name, tc := range map[string]struct{ given, want string }{
		"a whole number":                   {"8", "8"},
		"thousandths":                      {"1500m", "1500m"},
		"finer than a thousandth":          {"0.0001", "1m"},
		"negative, rounded away from zero": {"-1.0001", "-1001m"},
		"30 digits":                        {"1e29", "1e29"},
		"more than 30 digits":              {"1e40", "1e30"},
		"more than 30 digits, negative":    {"-1e40", "-1e30"},
		"a huge exponent":                  {"1e2147483647", "1e30"},
		"zero with a large exponent":       {"0e2000", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			given, want := resource.MustParse(tc.given), resource.MustParse(tc.want)
			got := normalized(given)
			if got.Cmp(want) != 0 {
				t.Errorf("normalized(%s) = %s, want %s", tc.given, got.String(), tc.want)
			}
			if again := normalized(got); again.Cmp(got) != 0 {
				t.Errorf("normalized again = %s, want no change", again.String())
			}
		})
	}
}
