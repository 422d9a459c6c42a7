package jobs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPodsOfAGangHaveItsPriority, whatever the default class is when they are created.
func TestPodsOfAGangHaveItsPriority(t *testing.T) {
	group := func(name, class string, priority int32) *schedulingv1beta1.PodGroup {
		return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: schedulingv1beta1.PodGroupSpec{PriorityClassName: class, Priority: &priority}}
	}
	classed := func(name, class string, priority int32, policy schedulingv1beta1.PreemptionPolicy) *schedulingv1beta1.PodGroup {
		g := group(name, class, priority)
		g.Spec.PreemptionPolicy = &policy
		return g
	}
	polite := podClass("polite", 0, true)
	polite.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	five, nine := podClass("five", 5, true), podClass("nine", 9, true)
	unprioritized := group("g", "", 0)
	unprioritized.Spec.Priority = nil
	type classes = []*schedulingv1.PriorityClass
	for name, tc := range map[string]struct {
		class   string
		classes classes
		there   []client.Object
		group   string
		pods    string
	}{
		"no group yet":                              {group: "g"},
		"no group yet, and a default":               {classes: classes{five}, group: "g", pods: "five"},
		"no group yet, and a class":                 {class: "nine", classes: classes{five, podClass("nine", 9, false)}, group: "g", pods: "nine"},
		"nothing has changed":                       {there: []client.Object{group("g", "", 0)}, group: "g"},
		"another class is the default":              {classes: classes{podClass("five", 5, false), nine}, there: []client.Object{group("g", "five", 5)}, group: "g", pods: "five"},
		"the default was made later":                {classes: classes{nine}, there: []client.Object{group("g", "", 0)}, group: "g.p9", pods: "nine"},
		"and their own gang is there":               {classes: classes{nine}, there: []client.Object{group("g", "", 0), group("g.p9", "nine", 9)}, group: "g.p9", pods: "nine"},
		"a default that changes nothing":            {classes: classes{podClass("zero", 0, true)}, there: []client.Object{group("g", "", 0)}, group: "g"},
		"the class was made anew":                   {class: "five", classes: classes{podClass("five", -6, false)}, there: []client.Object{group("g", "five", 5)}, group: "g.p-6", pods: "five"},
		"the default is gone":                       {there: []client.Object{group("g", "five", 5)}, group: "g.p0"},
		"the class is gone, and no pod can be":      {class: "five", there: []client.Object{group("g", "five", 5)}, group: "g", pods: "five"},
		"the same priority, which does not preempt": {classes: classes{polite}, there: []client.Object{classed("g", "", 0, schedulingv1beta1.PreemptLowerPriority)}, group: "g.p0", pods: "polite"},
		"nobody sees to priorities":                 {classes: classes{nine}, there: []client.Object{unprioritized}, group: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			group, pods := PriorityFacts{Pod: podClasses(tc.classes...)}.GangFor("g", tc.class, tc.there)
			if group != tc.group {
				t.Errorf("they join %q, want %q", group, tc.group)
			}
			if pods != tc.pods {
				t.Errorf("they name %q, want %q", pods, tc.pods)
			}
		})
	}
}
