package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// podRequests is what one pod of a template asks, as the scheduler will count it: a limit without a request is a
// request, as the API server makes it one.
func podRequests(template *corev1.PodTemplateSpec) corev1.ResourceList {
	spec := template.Spec.DeepCopy()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			requests := corev1.ResourceList{}
			maps.Copy(requests, containers[i].Resources.Limits)
			maps.Copy(requests, containers[i].Resources.Requests)
			containers[i].Resources.Requests = requests
		}
	}
	return podresource.PodRequests(&corev1.Pod{Spec: *spec}, podresource.PodResourcesOptions{})
}

// addTimes adds times × each amount of a list to a sum.
func addTimes(sum, list corev1.ResourceList, times int32) {
	for name, amount := range list {
		amount = amount.DeepCopy()
		amount.Mul(int64(times))
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}

// Amounts writes what a job asks for people: its devices if it has any, else its CPU, else its memory. With all, every
// resource that is not zero.
func Amounts(list corev1.ResourceList, all bool) string {
	var phrases []string
	for _, name := range resourceOrder(list) {
		amount := list[name]
		if amount.IsZero() {
			continue
		}
		if !all && len(phrases) > 0 && !isDevice(name) {
			break
		}
		phrases = append(phrases, Amount(name, amount))
	}
	return strings.Join(phrases, ", ")
}

// Amount writes one amount with the short name of its resource: 8 gpu.
func Amount(name corev1.ResourceName, amount resource.Quantity) string {
	return Number(amount) + " " + ShortName(name)
}

// Number writes a quantity for people, as the engine does.
func Number(q resource.Quantity) string { return quota.Number(q) }

// longest is of how many characters an amount of bytes is at most before it is rounded: 1023.9Gi.
const longest = 8

// Rounded is Number, but for bytes, of which nodes have odd numbers: where that is shorter these are in the largest unit and a tenth
// of it. It is for columns; who explains what is short must not round.
func Rounded(q resource.Quantity) string {
	if exact := Number(q); q.Format != resource.BinarySI || len(exact) <= longest {
		return exact
	}
	const units = "KMGTPE"
	amount, unit := float64(q.Value())/(1<<10), 0
	for ; math.Abs(amount) >= 1<<10 && unit < len(units)-1; unit++ {
		amount /= 1 << 10
	}
	return fmt.Sprintf("%.1f%ci", amount, units[unit])
}

// ShortName drops the vendor: nvidia.com/gpu is gpu.
func ShortName(name corev1.ResourceName) string {
	if _, short, found := strings.Cut(string(name), "/"); found {
		return short
	}
	return string(name)
}

func isDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// resourceOrder lists devices first, then CPU, memory and the rest by name: what is scarce comes first.
func resourceOrder(list corev1.ResourceList) []corev1.ResourceName {
	rank := func(name corev1.ResourceName) int {
		switch {
		case isDevice(name):
			return 0
		case name == corev1.ResourceCPU:
			return 1
		case name == corev1.ResourceMemory:
			return 2
		}
		return 3
	}
	return slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
}

// admittedAmounts sums what the Workload's admission gives to all pod sets, and counts their pods. What pods have given back while the
// others run is not in the sum. Where its queue counts no devices, as
// one that is without limit, these are as the pods ask for them.
func admittedAmounts(w *kueue.Workload) (sum corev1.ResourceList, pods int32) {
	sum, devices := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range w.Status.Admission.PodSetAssignments {
		assignment := &w.Status.Admission.PodSetAssignments[i]
		left, given := workload.Left(w, assignment)
		if workload.IsFinished(w) {
			left = given // what it had
		}
		addTimes(sum, usageOf(assignment, left, given), 1)
		pods += given
		for j := range w.Spec.PodSets {
			if podSet := &w.Spec.PodSets[j]; podSet.Name == assignment.Name {
				requests := podRequests(&podSet.Template)
				maps.DeleteFunc(requests, func(name corev1.ResourceName, _ resource.Quantity) bool { return !isDevice(name) })
				addTimes(devices, requests, left)
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(sum)), isDevice) {
		maps.Copy(sum, devices)
	}
	return sum, pods
}
