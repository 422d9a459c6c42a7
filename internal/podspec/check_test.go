package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/ptr"
)

// messageFor returns the message for a Workload with the one pod set "workers" of the spec.
func messageFor(site Environment, spec *corev1.PodSpec) string {
	return Message(site.Check(0, "workers", spec, site.Stored(spec)))
}

func TestCheckInvalidSpecs(t *testing.T) {
	const first = `resources validation failed: spec.podSets[0].template.spec`
	for name, tc := range map[string]struct {
		site Environment
		spec corev1.PodSpec
		want string
	}{
		"requests equal to limits": {Environment{},
			podOf(with(amounts("cpu", "1", "example.com/gpu", "0"), amounts("cpu", "1"))), ""},
		"no requests": {Environment{}, podOf(with(nil, nil)), ""},
		"a request that exceeds its limit": {Environment{},
			podOf(with(nil, nil), with(amounts("cpu", "2"), amounts("cpu", "1"))),
			first + `.containers[1]: Invalid value: ["cpu"]: requests must not exceed its limits (container "main" of pod set "workers" requests 2, its limit is 1)`},
		"a request that exceeds a default limit": {
			ranges(limitRange("lr", defaults(amounts("cpu", "1"), amounts("cpu", "1")))), podOf(with(amounts("cpu", "2"), nil)),
			first + `.containers[0]: Invalid value: ["cpu"]: requests must not exceed its limits (container "main" of pod set "workers" requests 2, its limit by default is 1)`},
		"a limit above the request": {Environment{},
			podOf(with(amounts("cpu", "1"), amounts("cpu", "2"))), ""},
		"a limit above the request by less than a thousandth": {Environment{},
			podOf(with(amounts("cpu", "0.0001"), amounts("cpu", "0.0002"))), ""},
		"a request of an init container that exceeds its limit": {Environment{},
			corev1.PodSpec{InitContainers: []corev1.Container{with(amounts("cpu", "2"), amounts("cpu", "1"))}},
			first + `.initContainers[0]: Invalid value: ["cpu"]: requests must not exceed its limits (container "main" of pod set "workers" requests 2, its limit is 1)`},
		"the reserved name pods": {Environment{}, podOf(with(amounts("pods", "1"), nil)),
			first + `.containers[0]: Invalid value: ["pods"]: the key is reserved for internal kueue use (container "main" of pod set "workers" has it among its requests)`},
		"a negative request": {Environment{}, podOf(with(amounts("cpu", "-1"), nil)),
			first + `.containers[0]: Invalid value: ["cpu"]: requests must not be negative (container "main" of pod set "workers" has -1)`},
		"a negative overhead": {Environment{}, corev1.PodSpec{Overhead: amounts("cpu", "-1")},
			first + `: Invalid value: ["cpu"]: overhead must not be negative (the pod of pod set "workers" has -1)`},
		"a request of the pod that exceeds its limit": {Environment{},
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "2"), Limits: amounts("cpu", "1")}},
			first + `: Invalid value: ["cpu"]: requests must not exceed its limits (the pod of pod set "workers" requests 2, its limit is 1)`},
		"a request of the pod below that of its containers": {Environment{},
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "1")},
				Containers: []corev1.Container{with(amounts("cpu", "2"), nil)}},
			first + `: Invalid value: ["cpu"]: requests must not be below those of its containers (the pod of pod set "workers" requests 1, its containers 2)`},
		"a limit of a container above that of its pod": {Environment{},
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "1")},
				Containers: []corev1.Container{with(amounts("cpu", "1"), amounts("cpu", "2"))}},
			first + `.containers[0]: Invalid value: ["cpu"]: limits must not exceed those of the pod (container "main" of pod set "workers" has the limit 2, the pod 1)`},
		"claims of devices": {Environment{},
			corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}},
			first + `.resourceClaims[0]: Forbidden: resource claims are not counted against quota (pod set "workers" has the claim "gpu"; request the devices as a resource of its containers)`},
		"a runtime class that does not exist": {Environment{},
			corev1.PodSpec{RuntimeClassName: ptr.To("kata")},
			first + `.runtimeClassName: Not found: "kata" (the pods of pod set "workers" would be refused until there is a RuntimeClass of that name)`},
		"a runtime class that exists": {Environment{RuntimeClasses: runtimeClass("kata",
			amounts("cpu", "1"), nil)}, corev1.PodSpec{RuntimeClassName: ptr.To("kata")}, ""},
		"a runtime class for other nodes": {Environment{RuntimeClasses: runtimeClass("kata", nil,
			&nodev1.Scheduling{NodeSelector: map[string]string{"zone": "a"}})},
			corev1.PodSpec{RuntimeClassName: ptr.To("kata"), NodeSelector: map[string]string{"zone": "b"}},
			first + `.nodeSelector[zone]: Invalid value: "b": must be "a" as in RuntimeClass "kata" (pod set "workers")`},
		"a runtime class for the same nodes, and for others": {Environment{RuntimeClasses: runtimeClass("kata", nil,
			&nodev1.Scheduling{NodeSelector: map[string]string{"zone": "a", "disk": "ssd"}})},
			corev1.PodSpec{RuntimeClassName: ptr.To("kata"), NodeSelector: map[string]string{"zone": "a"}}, ""},
		"limits of a container within that of its pod": {Environment{},
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "2")},
				Containers: []corev1.Container{with(amounts("cpu", "1"), amounts("cpu", "2", "memory", "1"))}}, ""},
		"an amount too large to be written in full": {Environment{},
			podOf(with(amounts("cpu", "1e2147483647"), amounts("cpu", "1"))),
			first + `.containers[0]: Invalid value: ["cpu"]: requests must not exceed its limits (container "main" of pod set "workers" requests 1e30, its limit is 1)`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := messageFor(tc.site, &tc.spec); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestCheckLimitRanges(t *testing.T) {
	container := func(item corev1.LimitRangeItem) Environment {
		item.Type = corev1.LimitTypeContainer
		return ranges(limitRange("lr", item))
	}
	pod := func(item corev1.LimitRangeItem) Environment {
		item.Type = corev1.LimitTypePod
		return ranges(limitRange("lr", item))
	}
	atMost, atLeast := corev1.LimitRangeItem{Max: amounts("cpu", "2")}, corev1.LimitRangeItem{Min: amounts("cpu", "500m")}
	twice := corev1.LimitRangeItem{MaxLimitRequestRatio: amounts("cpu", "2")}
	for name, tc := range map[string]struct {
		site Environment
		spec corev1.PodSpec
		want string // part of the message, "" for none
	}{
		"a container at its maximum": {container(atMost), podOf(with(nil, amounts("cpu", "2"))), ""},
		"a request above the maximum": {container(atMost),
			podOf(with(amounts("cpu", "3"), amounts("cpu", "3"))),
			`containers[0]: Invalid value: ["cpu"]: requests must not be above the limitRange max (container "main" of pod set "workers" has the request 3 and the limit 3, the max of LimitRange "lr" is 2)`},
		"a limit above the maximum": {container(atMost),
			podOf(with(amounts("cpu", "1"), amounts("cpu", "3"))),
			`["cpu"]: limits must not be above the limitRange max (container "main" of pod set "workers" has the request 1 and the limit 3, the max of LimitRange "lr" is 2)`},
		"no limit, and a maximum": {container(atMost), podOf(with(amounts("cpu", "1"), nil)),
			`["cpu"]: limits must be set where the limitRange has a max (container "main" of pod set "workers" has the request 1 and the limit none, the max of LimitRange "lr" is 2)`},
		"no limit, and a maximum that is the default": {container(corev1.LimitRangeItem{Max: amounts("cpu", "2"),
			Default: amounts("cpu", "2")}), podOf(with(amounts("cpu", "1"), nil)), ""},
		"a container at its minimum": {container(atLeast),
			podOf(with(amounts("cpu", "0.5"), nil)), ""},
		"a request below the minimum": {container(atLeast), podOf(with(amounts("cpu", "100m"), nil)),
			`["cpu"]: requests must not be below the limitRange min (container "main" of pod set "workers" has the request 100m and the limit none, the min of LimitRange "lr" is 500m)`},
		"no request, and a minimum": {container(atLeast), podOf(with(amounts("memory", "1"), nil)),
			`["cpu"]: requests must be set where the limitRange has a min`},
		"a negative minimum": {container(corev1.LimitRangeItem{Min: amounts("cpu", "-1")}),
			podOf(with(amounts("cpu", "0"), nil)), ""},
		"a limit at the ratio to the request": {container(twice),
			podOf(with(amounts("cpu", "1100m"), amounts("cpu", "2200m"))), ""},
		"a limit just above the ratio to the request": {container(twice),
			podOf(with(amounts("cpu", "1100m"), amounts("cpu", "2201m"))),
			`["cpu"]: limits must not be above the limitRange maxLimitRequestRatio times the requests (container "main" of pod set "workers" has the request 1100m and the limit 2201m, the maxLimitRequestRatio of LimitRange "lr" is 2)`},
		"no request, and a ratio": {container(twice), podOf(with(nil, nil)),
			"requests must be set, and not zero, where the limitRange has a maxLimitRequestRatio"},
		"no limit, and a ratio": {container(twice), podOf(with(amounts("cpu", "1"), nil)),
			"limits must be set, and not zero, where the limitRange has a maxLimitRequestRatio"},
		"an init container above the maximum": {container(atMost),
			corev1.PodSpec{InitContainers: []corev1.Container{with(nil, amounts("cpu", "3"))}},
			`initContainers[0]: Invalid value: ["cpu"]: requests must not be above the limitRange max`},
		"containers that exceed the pod's maximum together": {pod(atMost),
			podOf(with(nil, amounts("cpu", "1")), with(nil, amounts("cpu", "2"))),
			`template.spec: Invalid value: ["cpu"]: requests must not be above the limitRange max (the pod of pod set "workers" has the request 3 and the limit 3, the max of LimitRange "lr" is 2)`},
		"containers that reach the pod's minimum together": {pod(atLeast),
			podOf(with(amounts("cpu", "100m"), nil), with(amounts("cpu", "400m"), nil)), ""},
		"an init container above the pod's maximum": {pod(atMost),
			corev1.PodSpec{InitContainers: []corev1.Container{with(nil, amounts("cpu", "3"))},
				Containers: []corev1.Container{with(nil, amounts("cpu", "1"))}}, "requests must not be above the limitRange max"},
		"an overhead above the pod's maximum": {pod(atMost),
			corev1.PodSpec{Overhead: amounts("cpu", "1"), Containers: []corev1.Container{with(nil, amounts("cpu", "2"))}}, ""},
		"resources of the pod above its maximum": {pod(atMost),
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "3")},
				Containers: []corev1.Container{with(amounts("cpu", "1"), nil)}}, "limits must not be above the limitRange max"},
		"requests of the pod above its minimum": {pod(atLeast),
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "1")},
				Containers: []corev1.Container{with(amounts("cpu", "100m"), nil)}}, ""},
		"requests of the pod above its containers' limits": {pod(corev1.LimitRangeItem{Min: amounts("cpu", "3")}),
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "3")},
				Containers: []corev1.Container{with(amounts("cpu", "1"), amounts("cpu", "2"))}}, ""},
		"requests of the pod without limits, and a maximum": {pod(atMost),
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "2")},
				Containers: []corev1.Container{with(amounts("cpu", "1"), nil)}},
			"limits must be set where the limitRange has a max"},
		"no request of the pod, and a minimum": {pod(atLeast), podOf(with(nil, nil)),
			"requests must be set where the limitRange has a min"},
		"limits of volume claims": {
			ranges(limitRange("lr", corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim,
				Max: amounts("cpu", "0")})), podOf(with(amounts("cpu", "1"), nil)), ""},
		"two ranges, one of which is exceeded": {
			ranges(limitRange("a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amounts("cpu", "4")}),
				limitRange("b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amounts("cpu", "2")})),
			podOf(with(nil, amounts("cpu", "3"))), `LimitRange "b" is 2`},
		"an extremely large maximum": {container(corev1.LimitRangeItem{Max: amounts("cpu", "1e2147483647")}),
			podOf(with(nil, amounts("cpu", "1e20"))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := messageFor(tc.site, &tc.spec)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want it to contain %q", got, tc.want)
			}
			if got != "" &&
				!strings.HasPrefix(got, "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec") {
				t.Errorf("message = %q, want the prefix of LimitRange constraints", got)
			}
		})
	}
}

func TestMessageIsDeterministic(t *testing.T) {
	site := ranges(limitRange("lr",
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amounts("cpu", "1", "memory", "1")}))
	spec := podOf(with(amounts("cpu", "3", "memory", "3"), amounts("cpu", "2", "memory", "2")),
		with(amounts("example.com/a", "-1", "example.com/b", "-1"), nil))
	want := messageFor(site, &spec)
	for range 30 { // map order must not matter: each different message would be another write
		if got := messageFor(site, &spec); got != want {
			t.Fatalf("messages differ: %q and %q", want, got)
		}
	}
	head, tail, _ := strings.Cut(want, ". resources didn't satisfy LimitRange constraints: ")
	if strings.Count(head, "Invalid value") != 4 || !strings.HasPrefix(head, "resources validation failed: ") {
		t.Errorf("first part = %q, want four invalid values", head)
	}
	if strings.Count(tail, "Invalid value") != 1 || !strings.HasSuffix(tail, "; and 3 more") {
		t.Errorf("second part = %q, want one listed and three counted", tail)
	}
}
