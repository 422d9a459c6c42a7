package jobs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// TestPodsOfAGangHaveItsPriority: kube-scheduler binds no pods of a PodGroup if one has another priority. So new pods
// name the class of their PodGroup or, if they cannot have its priority, form a gang of their own.
func TestPodsOfAGangHaveItsPriority(t *testing.T) {
	group := func(name, class string, priority int32) *schedulingv1beta1.PodGroup {
		return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: schedulingv1beta1.PodGroupSpec{PriorityClassName: class, Priority: &priority}}
	}
	classed := func(name, class string, priority int32,
		policy schedulingv1beta1.PreemptionPolicy) *schedulingv1beta1.PodGroup {
		g := group(name, class, priority)
		g.Spec.PreemptionPolicy = &policy
		return g
	}
	polite := jobstest.PriorityClass("polite", 0, true)
	polite.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	five, nine := jobstest.PriorityClass("five", 5, true), jobstest.PriorityClass("nine", 9, true)
	unprioritized := group("g", "", 0)
	unprioritized.Spec.Priority = nil
	type classes = []*schedulingv1.PriorityClass
	for name, tc := range map[string]struct {
		class    string
		classes  classes
		existing []client.Object
		group    string
		pods     string
	}{
		"no PodGroup yet":                  {group: "g"},
		"no PodGroup yet, a default class": {classes: classes{five}, group: "g", pods: "five"},
		"no PodGroup yet, a named class": {class: "nine", classes: classes{five, jobstest.PriorityClass("nine", 9, false)},
			group: "g", pods: "nine"},
		"no change": {existing: []client.Object{group("g", "", 0)}, group: "g"},
		"default replaced by another class": {classes: classes{jobstest.PriorityClass("five", 5, false), nine},
			existing: []client.Object{group("g", "five", 5)}, group: "g", pods: "five"},
		"default created later": {classes: classes{nine},
			existing: []client.Object{group("g", "", 0)}, group: "g.p9", pods: "nine"},
		"default created later, PodGroup for it exists": {classes: classes{nine},
			existing: []client.Object{group("g", "", 0), group("g.p9", "nine", 9)}, group: "g.p9", pods: "nine"},
		"default of the same priority": {classes: classes{jobstest.PriorityClass("zero", 0, true)},
			existing: []client.Object{group("g", "", 0)}, group: "g"},
		"class recreated with another value": {class: "five", classes: classes{jobstest.PriorityClass("five", -6, false)},
			existing: []client.Object{group("g", "five", 5)}, group: "g.p-6", pods: "five"},
		"default deleted": {existing: []client.Object{group("g", "five", 5)}, group: "g.p0"},
		"class deleted, so that no pod can be created": {class: "five", existing: []client.Object{group("g", "five", 5)},
			group: "g", pods: "five"},
		"same priority, other preemption policy": {classes: classes{polite},
			existing: []client.Object{classed("g", "", 0, schedulingv1beta1.PreemptLowerPriority)},
			group:    "g.p0", pods: "polite"},
		"PodGroup without a priority": {classes: classes{nine}, existing: []client.Object{unprioritized}, group: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			group, pods := jobs.PriorityFacts{Pod: jobstest.PriorityClasses(tc.classes...)}.GangFor("g", tc.class, tc.existing)
			if group != tc.group {
				t.Errorf("the pods join %q, want %q", group, tc.group)
			}
			if pods != tc.pods {
				t.Errorf("the pods name the class %q, want %q", pods, tc.pods)
			}
		})
	}
}
