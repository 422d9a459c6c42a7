package jobs

import (
	"cmp"
	"maps"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// PriorityFacts are the classes that give names to priorities.
type PriorityFacts struct {
	Workload map[string]*kueue.WorkloadPriorityClass
	Pod      map[string]*schedulingv1.PriorityClass
}

// priority is a Workload's priority and where it comes from.
type priority struct {
	value         int32
	class, source string
}

// priorityOf resolves a job's priority: the label that names a
// WorkloadPriorityClass, else the API's own field, number or name, else the first pod set that
// names a class, else the cluster's default class, else 0. A name without a class
// counts as 0 and is kept, so that people see which one is missing.
func priorityOf(job client.Object, described Description, facts PriorityFacts) priority {
	if name := job.GetLabels()[kueue.WorkloadPriorityClassLabel]; name != "" {
		p := priority{class: name, source: kueue.WorkloadPriorityClassSource}
		if class := facts.Workload[name]; class != nil {
			p.value = class.Value
		}
		return p
	}
	if described.Priority != nil {
		return priority{value: *described.Priority}
	}
	names := []string{described.PriorityClass}
	for _, ps := range described.PodSets {
		names = append(names, ps.Template.Spec.PriorityClassName)
	}
	for _, name := range names {
		if name != "" {
			p := priority{class: name, source: kueue.PodPriorityClassSource}
			if class := facts.Pod[name]; class != nil {
				p.value = class.Value
			}
			return p
		}
	}
	if byDefault := facts.podDefault(); byDefault != nil {
		return priority{value: byDefault.Value, class: byDefault.Name, source: kueue.PodPriorityClassSource}
	}
	return priority{}
}

// remembering are the classes, and the one that the Workload has its priority of, though it is gone by now: who is in line by it, or runs,
// stays where he is.
func (facts PriorityFacts) remembering(w *kueue.Workload) PriorityFacts {
	if w == nil || w.Spec.PriorityClassSource != kueue.WorkloadPriorityClassSource || w.Spec.Priority == nil || facts.Workload[w.Spec.PriorityClassName] != nil {
		return facts
	}
	facts.Workload = maps.Clone(facts.Workload)
	if facts.Workload == nil {
		facts.Workload = map[string]*kueue.WorkloadPriorityClass{}
	}
	facts.Workload[w.Spec.PriorityClassName] = &kueue.WorkloadPriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Spec.PriorityClassName}, Value: *w.Spec.Priority,
	}
	return facts
}

// OfPods is the priority of pods that name the class, or none if it is "": then that of
// the cluster's default class, else 0. It is not known if there is no such class: no pods
// of it can be made.
func (facts PriorityFacts) OfPods(class string) (value int32, known bool) {
	found := facts.Pod[class]
	switch {
	case class == "":
		if found = facts.podDefault(); found == nil {
			return 0, true
		}
	case found == nil:
		return 0, false
	}
	return found.Value, true
}

// podDefault is the class of pods that name none, nil if there is none.
func (facts PriorityFacts) podDefault() *schedulingv1.PriorityClass {
	var byDefault *schedulingv1.PriorityClass
	for _, class := range facts.Pod {
		// As the API server does: of several defaults the lowest counts.
		if class.GlobalDefault && (byDefault == nil || cmp.Or(cmp.Compare(class.Value, byDefault.Value), cmp.Compare(class.Name, byDefault.Name)) < 0) {
			byDefault = class
		}
	}
	return byDefault
}
