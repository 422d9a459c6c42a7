package workloads

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// podSetsOf returns a pod set for each of these priority classes.
func podSetsOf(classes ...string) []kueue.PodSet {
	var out []kueue.PodSet
	for _, class := range classes {
		out = append(out, kueue.PodSet{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: class}}})
	}
	return out
}

func TestPriorityOf(t *testing.T) {
	some := jobs.PriorityFacts{
		Workload: map[string]*kueue.WorkloadPriorityClass{
			"urgent": {ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 7}},
		Pod: jobstest.PriorityClasses(jobstest.PriorityClass("high", 1000, false), jobstest.PriorityClass("low", -5, false)),
	}
	withDefaults := jobs.PriorityFacts{Pod: jobstest.PriorityClasses(jobstest.PriorityClass("high", 1000, true),
		jobstest.PriorityClass("low", 3, true))}
	for name, tc := range map[string]struct {
		label     string
		described jobs.Description
		facts     jobs.PriorityFacts
		want      priority
	}{
		"no class": {facts: some},
		"label of a WorkloadPriorityClass first": {
			label: "urgent", described: jobs.Description{PriorityClass: "high", PodSets: podSetsOf("low")}, facts: some,
			want: priority{7, "urgent", "kueue.x-k8s.io/workloadpriorityclass"},
		},
		"label of a class that does not exist": {
			label: "missing", described: jobs.Description{PriorityClass: "high"}, facts: some,
			want: priority{0, "missing", "kueue.x-k8s.io/workloadpriorityclass"},
		},
		"API's own field second": {
			described: jobs.Description{PriorityClass: "high", PodSets: podSetsOf("low")}, facts: some,
			want: priority{1000, "high", "scheduling.k8s.io/priorityclass"},
		},
		"first pod set with a class third": {
			described: jobs.Description{PodSets: podSetsOf("", "low", "high")}, facts: some,
			want: priority{-5, "low", "scheduling.k8s.io/priorityclass"},
		},
		"pod set's class that does not exist": {
			described: jobs.Description{PodSets: podSetsOf("missing", "high")}, facts: some,
			want: priority{0, "missing", "scheduling.k8s.io/priorityclass"},
		},
		"lowest default class last": {
			described: jobs.Description{PodSets: podSetsOf("")}, facts: withDefaults,
			want: priority{3, "low", "scheduling.k8s.io/priorityclass"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobWith(nil)
			if tc.label != "" {
				job.Labels = map[string]string{kueue.WorkloadPriorityClassLabel: tc.label}
			}
			if got := priorityOf(job, tc.described, tc.facts); got != tc.want {
				t.Errorf("priority = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestEqualDefaultClassesAreOrderedByName: with the order of a map the Workload would be written again and again.
func TestEqualDefaultClassesAreOrderedByName(t *testing.T) {
	var classes []*schedulingv1.PriorityClass
	for i := range 9 {
		classes = append(classes, jobstest.PriorityClass(fmt.Sprintf("class-%d", i), 5, true))
	}
	for range 50 {
		got := priorityOf(jobWith(nil), jobs.Description{}, jobs.PriorityFacts{Pod: jobstest.PriorityClasses(classes...)})
		if got.class != "class-0" {
			t.Fatalf("the default class is %s, want class-0 every time", got.class)
		}
	}
}
