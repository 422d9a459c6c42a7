package jobs

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// priorityInfix separates the name of a gang from a priority, in the name of the PodGroup for the pods whose priority
// is not that of the gang's own PodGroup.
const priorityInfix = ".p"

// GangFor returns the PodGroup, for the gang of this name, that new pods join whose template names the class, and the
// class that they have to name. kube-scheduler binds no pods of a PodGroup if some of them have another priority than
// the PodGroup, whose priority is set at its creation. So pods that would get the cluster's default class name the
// class of their PodGroup instead, since the default may have changed in the meantime. If that class cannot be named,
// because there was none or it is gone, they form a gang of their own.
func (p PriorityFacts) GangFor(name, class string, children []client.Object) (group, priorityClass string) {
	for {
		there := podGroupOf(name, children)
		switch {
		case there == nil:
			if byDefault := p.PodDefault(); class == "" && byDefault != nil {
				class = byDefault.Name
			}
			return name, class
		case there.Spec.Priority == nil:
			return name, class // the cluster does not set priorities of PodGroups
		case class == "" && p.suits(there, there.Spec.PriorityClassName):
			return name, there.Spec.PriorityClassName
		}
		value, known := p.OfPods(class)
		if !known || p.suits(there, class) {
			return name, class
		}
		name += priorityInfix + strconv.FormatInt(int64(value), 10)
	}
}

// suits reports whether pods that are created now with this class have the priority and preemption policy of the
// PodGroup.
func (p PriorityFacts) suits(group *schedulingv1beta1.PodGroup, class string) bool {
	value, known := p.OfPods(class)
	policy := p.policyOf(class)
	return known && value == *group.Spec.Priority &&
		policy == corev1.PreemptionPolicy(ptr.Deref(group.Spec.PreemptionPolicy, schedulingv1beta1.PreemptionPolicy(policy)))
}

// Excludes reports whether kube-scheduler would not bind pods of the PodGroup that are created now with this class,
// because they would get another priority than the PodGroup.
func (p PriorityFacts) Excludes(group, class string, children []client.Object) bool {
	there := podGroupOf(group, children)
	if there == nil || there.Spec.Priority == nil {
		return false
	}
	_, known := p.OfPods(class)
	return known && !p.suits(there, class)
}

// policyOf returns whether pods that name the class may preempt others.
func (p PriorityFacts) policyOf(class string) corev1.PreemptionPolicy {
	found := p.Pod[class]
	if class == "" {
		found = p.PodDefault()
	}
	if found == nil {
		return corev1.PreemptLowerPriority
	}
	return ptr.Deref(found.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// IsOfGang reports whether the pods belong to the gang of this name, whatever their priority.
func IsOfGang(spec *corev1.PodSpec, name string) bool {
	if spec.SchedulingGroup == nil {
		return false
	}
	group := ptr.Deref(spec.SchedulingGroup.PodGroupName, "")
	return group == name || strings.HasPrefix(group, name+priorityInfix)
}
