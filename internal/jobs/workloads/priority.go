package workloads

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// priority is a Workload's priority and where it comes from.
type priority struct {
	value         int32
	class, source string
}

// priorityOf returns a job's priority: from the label that names a WorkloadPriorityClass, else from the API's own
// field, be it a number or a name, else from the first pod set that names a class, else from the cluster's default
// class, else 0. The name of a missing class counts as 0 and is kept, so that users see which one is missing.
func priorityOf(job client.Object, described jobs.Description, facts jobs.PriorityFacts) priority {
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
	if byDefault := facts.PodDefault(); byDefault != nil {
		return priority{value: byDefault.Value, class: byDefault.Name, source: kueue.PodPriorityClassSource}
	}
	return priority{}
}

// RememberPriority returns the facts with the class by which the Workload has its priority, even if that class has been
// deleted: a job that waits or runs keeps its priority.
func RememberPriority(p jobs.PriorityFacts, w *kueue.Workload) jobs.PriorityFacts {
	if w == nil || w.Spec.PriorityClassSource != kueue.WorkloadPriorityClassSource || w.Spec.Priority == nil ||
		p.Workload[w.Spec.PriorityClassName] != nil {
		return p
	}
	p.Workload = maps.Clone(p.Workload)
	if p.Workload == nil {
		p.Workload = map[string]*kueue.WorkloadPriorityClass{}
	}
	p.Workload[w.Spec.PriorityClassName] = &kueue.WorkloadPriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Spec.PriorityClassName}, Value: *w.Spec.Priority,
	}
	return p
}

// keptBy returns the priority of a job whose Workload is w, nil for none. One that has quota by a WorkloadPriorityClass
// and names none any more keeps the class until it is queued again, with the value that the class has by now.
func (p priority) keptBy(w *kueue.Workload, facts jobs.PriorityFacts) priority {
	if w == nil || !workload.HoldsQuota(w) || w.Spec.PriorityClassSource != kueue.WorkloadPriorityClassSource ||
		p.source == kueue.WorkloadPriorityClassSource {
		return p
	}
	class := facts.Workload[w.Spec.PriorityClassName]
	if class == nil {
		return p
	}
	return priority{value: class.Value, class: class.Name, source: kueue.WorkloadPriorityClassSource}
}
