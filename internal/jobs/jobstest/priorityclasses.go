package jobstest

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PriorityClass returns a class of pods, which is the cluster's default if byDefault is set.
func PriorityClass(name string, value int32, byDefault bool) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: byDefault}
}

// PriorityClasses returns the classes by name.
func PriorityClasses(classes ...*schedulingv1.PriorityClass) map[string]*schedulingv1.PriorityClass {
	out := map[string]*schedulingv1.PriorityClass{}
	for _, c := range classes {
		out[c.Name] = c
	}
	return out
}
