package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// Amounts formats requests: devices if there are any, else CPU, else memory. With all, it includes every resource that
// is not zero.
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

// Amount formats one amount with the short name of its resource: 8 gpu.
func Amount(name corev1.ResourceName, amount resource.Quantity) string {
	return Number(amount) + " " + ShortName(name)
}

// Number formats a quantity as the engine does in its messages, but thousandths as a decimal fraction where they come
// to one or more: 764.4 and not 764400m, which nobody compares with 770.
func Number(q resource.Quantity) string {
	text := quota.Number(q)
	milli, some := strings.CutSuffix(text, "m")
	at := len(milli) - 3
	if !some || at <= 0 || milli[at-1] == '-' {
		return text
	}
	return milli[:at] + "." + strings.TrimRight(milli[at:], "0")
}

// longest is the number of characters up to which Rounded keeps the exact value: 1023.9Gi.
const longest = 8

// Rounded formats a quantity for a table column: long amounts of bytes, which are common for nodes, are rounded to a
// tenth of their largest unit, and all other amounts are exact. An amount that is short is not rounded: its explanation
// needs exact numbers.
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

// ShortName drops the vendor of a resource name: nvidia.com/gpu becomes gpu.
func ShortName(name corev1.ResourceName) string {
	if _, short, found := strings.Cut(string(name), "/"); found {
		return short
	}
	return string(name)
}

func isDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// resourceOrder returns the names of list with the scarce ones first: devices, then CPU, memory and the rest, each by
// name.
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

// admittedAmounts returns the sum of what a Workload's admission grants to its pod sets, and the number of admitted
// pods. Quota that finished pods have returned is left out while others run. If the admission counts no devices, as in
// a queue without limits, the devices that the pods request are added.
func admittedAmounts(w *kueue.Workload) (sum corev1.ResourceList, pods int32) {
	sum, devices := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range w.Status.Admission.PodSetAssignments {
		assignment := &w.Status.Admission.PodSetAssignments[i]
		left, given := workload.PodsHoldingQuota(w, assignment)
		if workload.IsFinished(w) {
			left = given // report what the admission gave
		}
		podspec.AddTimes(sum, usageOf(assignment, left, given), 1)
		pods += given
		for j := range w.Spec.PodSets {
			if podSet := &w.Spec.PodSets[j]; podSet.Name == assignment.Name {
				requests := maps.Clone(podspec.Requests(podSet.Template.Spec))
				maps.DeleteFunc(requests, func(name corev1.ResourceName, _ resource.Quantity) bool { return !isDevice(name) })
				podspec.AddTimes(devices, requests, left)
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(sum)), isDevice) {
		maps.Copy(sum, devices)
	}
	return sum, pods
}
