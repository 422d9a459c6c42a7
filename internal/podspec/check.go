package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Check returns why the API server, or Muster, would refuse pods of the spec. index and name identify the pod set in
// its Workload; stored is what Stored returned for the spec. The violations are in no particular order.
func (e Environment) Check(index int, name string, spec, stored *corev1.PodSpec) []Violation {
	c := checker{site: e, podSet: index, name: name, spec: spec, stored: stored}
	c.checkRuntimeClass()
	c.checkClaims()
	c.checkAffinity()
	c.checkContainers()
	c.checkPod()
	return c.found
}

// checker collects the violations of one pod set. It formats text only for violations, as nearly all pod sets have
// none.
type checker struct {
	site         Environment
	podSet       int
	name         string
	spec, stored *corev1.PodSpec
	found        []Violation
}

// place is the part of a pod that a violation is about: a container, or the whole pod.
type place struct {
	// field is the list that contains the container, "" for the whole pod, and index its position there.
	field string
	index int
	// name is the container's.
	name string
}

// sortKey orders the places in messages: containers, init containers, the pod.
func (p place) sortKey() int {
	const manyContainers = 1 << 20
	switch p.field {
	case "containers":
		return p.index
	case "initContainers":
		return p.index + manyContainers
	}
	return 2 * manyContainers
}

func (p place) path(podSet int) string {
	if p.field == "" {
		return fmt.Sprintf("spec.podSets[%d].template.spec", podSet)
	}
	return fmt.Sprintf("spec.podSets[%d].template.spec.%s[%d]", podSet, p.field, p.index)
}

func (p place) String() string {
	if p.field == "" {
		return "the pod"
	}
	return fmt.Sprintf("container %q", p.name)
}

// refuse adds a violation of a rule about a resource.
func (c *checker) refuse(at place, name corev1.ResourceName, rule, because string) {
	c.add(at, name, invalid, fmt.Sprintf("%s: Invalid value: [%q]: %s (%s of pod set %q %s)", at.path(c.podSet), name,
		rule, at, c.name, because))
}

func (c *checker) add(at place, name corev1.ResourceName, kind kind, text string) {
	c.found = append(c.found,
		Violation{Text: text, kind: kind, podSet: c.podSet, place: at.sortKey(), resource: string(name)})
}

func (c *checker) checkRuntimeClass() {
	if c.spec.RuntimeClassName == nil {
		return
	}
	pod, name := place{}, *c.spec.RuntimeClassName
	class := c.site.runtimeClass(c.spec)
	if class == nil {
		c.add(pod, "", invalid, fmt.Sprintf("%s.runtimeClassName: Not found: %q (the pods of pod set %q would be refused until there is a RuntimeClass of that name)",
			pod.path(c.podSet), name, c.name))
		return
	}
	if class.Scheduling == nil {
		return
	}
	for key, want := range class.Scheduling.NodeSelector {
		if have, ok := c.spec.NodeSelector[key]; ok && have != want {
			c.add(pod, "", invalid, fmt.Sprintf("%s.nodeSelector[%s]: Invalid value: %q: must be %q as in RuntimeClass %q (pod set %q)",
				pod.path(c.podSet), key, have, want, name, c.name))
		}
	}
}

// checkClaims refuses resource claims: their devices are not counted against quota, and so must not be admitted as if
// they were free.
func (c *checker) checkClaims() {
	for i, claim := range c.spec.ResourceClaims {
		pod := place{}
		c.add(pod, "", invalid, fmt.Sprintf("%s.resourceClaims[%d]: Forbidden: resource claims are not counted against quota (pod set %q has the claim %q; request the devices as a resource of its containers)",
			pod.path(c.podSet), i, c.name, claim.Name))
	}
}

func (c *checker) checkContainers() {
	for _, list := range []struct {
		field         string
		given, stored []corev1.Container
	}{
		{"containers", c.spec.Containers, c.stored.Containers},
		{"initContainers", c.spec.InitContainers, c.stored.InitContainers},
	} {
		for i := range list.stored {
			at := place{field: list.field, index: i, name: list.stored[i].Name}
			stored := &list.stored[i].Resources
			c.checkResources(at, stored, list.given[i].Resources.Limits)
			for _, limitRange := range c.site.LimitRanges {
				c.checkRange(at, limitRange, corev1.LimitTypeContainer, stored.Requests, stored.Limits)
			}
		}
	}
}

// checkResources checks the rules that hold in every namespace. given are the limits in the user's spec; they tell
// whether a limit is the user's or a default.
func (c *checker) checkResources(at place, r *corev1.ResourceRequirements, given corev1.ResourceList) {
	c.checkList(at, "requests", r.Requests)
	c.checkList(at, "limits", r.Limits)
	for name, limit := range r.Limits {
		request, ok := r.Requests[name]
		if !ok || request.Cmp(limit) <= 0 {
			continue
		}
		whose := "its limit"
		if _, own := given[name]; !own {
			whose = "its limit by default"
		}
		c.refuse(at, name, "requests must not exceed its limits",
			fmt.Sprintf("requests %s, %s is %s", request.String(), whose, limit.String()))
	}
}

func (c *checker) checkList(at place, kind string, list corev1.ResourceList) {
	for name, q := range list {
		if name == corev1.ResourcePods {
			c.refuse(at, name, "the key is reserved for internal kueue use", "has it among its "+kind)
		}
		if q.Sign() < 0 {
			c.refuse(at, name, kind+" must not be negative", fmt.Sprintf("has %s", q.String()))
		}
	}
}

// checkPod checks the resources of the pod as a whole.
func (c *checker) checkPod() {
	pod := place{}
	c.checkList(pod, "overhead", c.stored.Overhead)
	if c.stored.Resources != nil {
		c.checkResources(pod, c.stored.Resources, c.spec.Resources.Limits)
		c.checkPodAgainstContainers()
	}
	if !hasItems(c.site.LimitRanges, corev1.LimitTypePod) {
		return
	}
	requests, limits := rangedTotals(c.stored)
	for _, limitRange := range c.site.LimitRanges {
		c.checkRange(pod, limitRange, corev1.LimitTypePod, requests, limits)
	}
}

// checkPodAgainstContainers checks that pod-level resources are enough for the containers.
func (c *checker) checkPodAgainstContainers() {
	pod := c.stored.Resources
	sum := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *c.stored}, resourcehelper.PodResourcesOptions{})
	for name, request := range pod.Requests {
		if needed, ok := sum[name]; ok && needed.Cmp(request) > 0 {
			c.refuse(place{}, name, "requests must not be below those of its containers",
				fmt.Sprintf("requests %s, its containers %s", request.String(), needed.String()))
		}
	}
	for i := range c.stored.Containers {
		container := &c.stored.Containers[i]
		at := place{field: "containers", index: i, name: container.Name}
		for name, limit := range container.Resources.Limits {
			if bound, ok := pod.Limits[name]; ok && limit.Cmp(bound) > 0 {
				c.refuse(at, name, "limits must not exceed those of the pod",
					fmt.Sprintf("has the limit %s, the pod %s", limit.String(), bound.String()))
			}
		}
	}
}

// rangedTotals returns the pod's requests and limits as LimitRanges count them: without overhead, and of the pod-level
// resources only cpu and memory.
func rangedTotals(stored *corev1.PodSpec) (requests, limits corev1.ResourceList) {
	pod := &corev1.Pod{Spec: *stored}
	requests = resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	limits = resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	if stored.Resources == nil {
		return requests, limits
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		override(requests, stored.Resources.Requests, name)
		override(limits, stored.Resources.Limits, name)
	}
	return requests, limits
}

func override(list, by corev1.ResourceList, name corev1.ResourceName) {
	if q, ok := by[name]; ok {
		list[name] = q
	}
}

// quantity formats a quantity that may be missing.
func quantity(q resource.Quantity, ok bool) string {
	if !ok {
		return "none"
	}
	return q.String()
}
