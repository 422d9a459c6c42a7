package jobs

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// priorityInfix stands between the name of a gang and the priority of those of its pods that
// have another than its PodGroup.
const priorityInfix = ".p"

// GangFor is the PodGroup, of the gang of the name, that new pods join whose template names
// the class, and the class that they are to name. kube-scheduler binds nobody of a PodGroup
// some of whose pods have another priority than it, which is the one that it was made with.
// So pods that would be given the cluster's default class name the one that their PodGroup
// was given: another may be the default by the time that they are made. Where that cannot be
// named, since there was none or it is gone, they are a gang of their own.
func (facts PriorityFacts) GangFor(name, class string, children []client.Object) (group, priorityClass string) {
	for {
		there := podGroupOf(name, children)
		switch {
		case there == nil:
			if byDefault := facts.podDefault(); class == "" && byDefault != nil {
				class = byDefault.Name
			}
			return name, class
		case there.Spec.Priority == nil:
			return name, class // nobody sees to priorities
		case class == "" && facts.suits(there, there.Spec.PriorityClassName):
			return name, there.Spec.PriorityClassName
		}
		value, known := facts.OfPods(class)
		if !known || facts.suits(there, class) {
			return name, class
		}
		name += priorityInfix + strconv.FormatInt(int64(value), 10)
	}
}

// suits reports whether pods that name the class now are taken for some of the PodGroup's.
func (facts PriorityFacts) suits(group *schedulingv1beta1.PodGroup, class string) bool {
	value, known := facts.OfPods(class)
	policy := facts.policyOf(class)
	return known && value == *group.Spec.Priority && policy == corev1.PreemptionPolicy(ptr.Deref(group.Spec.PreemptionPolicy, schedulingv1beta1.PreemptionPolicy(policy)))
}

// KeepsOut reports whether kube-scheduler would bind no pods of the PodGroup that were made now and name the class: they would
// be given another priority than the PodGroup has.
func (facts PriorityFacts) KeepsOut(group, class string, children []client.Object) bool {
	there := podGroupOf(group, children)
	if there == nil || there.Spec.Priority == nil {
		return false
	}
	_, known := facts.OfPods(class)
	return known && !facts.suits(there, class)
}

// policyOf says whether pods that name the class may preempt others.
func (facts PriorityFacts) policyOf(class string) corev1.PreemptionPolicy {
	found := facts.Pod[class]
	if class == "" {
		found = facts.podDefault()
	}
	if found == nil {
		return corev1.PreemptLowerPriority
	}
	return ptr.Deref(found.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// IsOfGang reports whether the pods are of the gang of the name, whatever their priority.
func IsOfGang(spec *corev1.PodSpec, name string) bool {
	if spec.SchedulingGroup == nil {
		return false
	}
	group := ptr.Deref(spec.SchedulingGroup.PodGroupName, "")
	return group == name || strings.HasPrefix(group, name+priorityInfix)
}
