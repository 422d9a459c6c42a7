package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/podspec"
)

// changed is the event for an object that was added or has changed.
func changed(object client.Object) engine.Event {
	switch o := object.(type) {
	case *kueue.Workload:
		if meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished) {
			return engine.WorkloadGone{Key: keyOf(o)}
		}
		return engine.WorkloadSet{Workload: workloadOf(o)}
	case *kueue.ClusterQueue:
		return engine.ClusterQueueSet{ClusterQueue: clusterQueueOf(o)}
	case *kueue.LocalQueue:
		return engine.LocalQueueSet{LocalQueue: engine.LocalQueue{
			Key: keyOf(o), ClusterQueue: string(o.Spec.ClusterQueue), Held: stopped(o.Spec.StopPolicy)}}
	case *kueue.Cohort:
		return engine.CohortSet{Cohort: engine.Cohort{
			Name: o.Name, Parent: string(o.Spec.ParentName), Quotas: quotasOf(o.Spec.ResourceGroups)}}
	case *kueue.ResourceFlavor:
		return engine.FlavorSet{Flavor: engine.Flavor{
			Name: o.Name, NodeLabels: o.Spec.NodeLabels, NodeTaints: o.Spec.NodeTaints, Tolerations: o.Spec.Tolerations}}
	case *corev1.Namespace:
		return engine.NamespaceSet{Name: o.Name, Labels: o.Labels}
	}
	panic(fmt.Sprintf("no event for a %T", object)) // a watch that nobody gave a meaning
}

// deleted is the event for an object that is gone.
func deleted(object client.Object) engine.Event {
	switch o := object.(type) {
	case *kueue.Workload:
		return engine.WorkloadGone{Key: keyOf(o)}
	case *kueue.ClusterQueue:
		return engine.ClusterQueueDeleted{Name: o.Name}
	case *kueue.LocalQueue:
		return engine.LocalQueueDeleted{Key: keyOf(o)}
	case *kueue.Cohort:
		return engine.CohortDeleted{Name: o.Name}
	case *kueue.ResourceFlavor:
		return engine.FlavorDeleted{Name: o.Name}
	case *corev1.Namespace:
		return engine.NamespaceDeleted{Name: o.Name}
	}
	panic(fmt.Sprintf("no event for a %T", object))
}

func keyOf(object client.Object) engine.Key {
	return engine.Key{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func objectKey(key engine.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

func stopped(policy *kueue.StopPolicy) bool {
	return policy != nil && *policy != kueue.None
}

func workloadOf(w *kueue.Workload) engine.Workload {
	out := engine.Workload{
		Key: keyOf(w),
		UID: string(w.UID), Generation: w.Generation, Version: versionOf(w),
		Queue:     string(w.Spec.QueueName),
		Priority:  ptr.Deref(w.Spec.Priority, 0),
		QueuedAt:  w.CreationTimestamp.Time,
		Inactive:  !ptr.Deref(w.Spec.Active, true),
		Admission: admissionOf(w),
		Refused:   refusal(w),
	}
	for i := range w.Spec.PodSets {
		out.PodSets = append(out.PodSets, podSetOf(&w.Spec.PodSets[i]))
	}
	return out
}

// versionOf is the object's resourceVersion, which grows with every change.
func versionOf(object client.Object) int64 {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0 // an object that was never stored
	}
	return version
}

func podSetOf(ps *kueue.PodSet) engine.PodSet {
	spec := ps.Template.Spec
	out := engine.PodSet{
		Name:         string(ps.Name),
		Count:        ps.Count,
		PerPod:       map[string]int64{},
		Tolerations:  spec.Tolerations,
		NodeSelector: spec.NodeSelector,
	}
	if spec.Affinity != nil {
		out.Affinity = spec.Affinity.NodeAffinity
	}
	for name, q := range podspec.Requests(spec) {
		out.PerPod[string(name)] = quota.FromQuantity(name, q)
	}
	return out
}

// refusal says what is wrong with a Workload that the API could not refuse, or "".
// Of several faults it is the first by name each time.
func refusal(w *kueue.Workload) string {
	for _, ps := range w.Spec.PodSets {
		requests := podspec.Requests(ps.Template.Spec)
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			switch q := requests[name]; {
			case name == corev1.ResourcePods:
				return fmt.Sprintf("pod set %s requests the resource %q: the key is reserved for internal kueue use", ps.Name, name)
			case q.Sign() < 0:
				return fmt.Sprintf("pod set %s requests %s of %s: a request must not be negative", ps.Name, q.String(), name)
			}
		}
	}
	return ""
}

func admissionOf(w *kueue.Workload) *engine.Admission {
	if w.Status.Admission == nil {
		return nil
	}
	counts := map[kueue.PodSetReference]int32{}
	for _, ps := range w.Spec.PodSets {
		counts[ps.Name] = ps.Count
	}
	out := &engine.Admission{ClusterQueue: string(w.Status.Admission.ClusterQueue)}
	for _, a := range w.Status.Admission.PodSetAssignments {
		assignment := engine.Assignment{
			PodSet:  string(a.Name),
			Count:   ptr.Deref(a.Count, counts[a.Name]),
			Flavors: map[string]string{},
			Usage:   map[string]int64{},
		}
		for resource, name := range a.Flavors {
			assignment.Flavors[string(resource)] = string(name)
			assignment.Usage[string(resource)] = quota.FromQuantity(resource, a.ResourceUsage[resource])
		}
		out.PodSets = append(out.PodSets, assignment)
	}
	return out
}

func clusterQueueOf(q *kueue.ClusterQueue) engine.ClusterQueue {
	out := engine.ClusterQueue{
		Name:       q.Name,
		Cohort:     string(q.Spec.Cohort),
		Quotas:     quotasOf(q.Spec.ResourceGroups),
		Namespaces: labels.Nothing(),
		Held:       stopped(q.Spec.StopPolicy),
		Inactive:   unserved(q),
	}
	if q.Spec.QueueingStrategy == kueue.StrictFIFO {
		out.Strategy = engine.Strict
	}
	if q.Spec.NamespaceSelector != nil {
		// A selector that does not parse was refused by the API; none passes then.
		if selector, err := metav1.LabelSelectorAsSelector(q.Spec.NamespaceSelector); err == nil {
			out.Namespaces = selector
		}
	}
	for _, g := range q.Spec.ResourceGroups {
		var group flavor.Group
		for _, resource := range g.CoveredResources {
			group.Resources = append(group.Resources, string(resource))
		}
		for _, f := range g.Flavors {
			group.Flavors = append(group.Flavors, string(f.Name))
		}
		out.Groups = append(out.Groups, group)
	}
	return out
}

// unserved says what a ClusterQueue relies on that Muster does not do yet, or "". A
// gate that nobody keeps must not stand open.
func unserved(q *kueue.ClusterQueue) string {
	if len(q.Spec.AdmissionChecks) > 0 || q.Spec.AdmissionChecksStrategy != nil && len(q.Spec.AdmissionChecksStrategy.AdmissionChecks) > 0 {
		return "it has admission checks, which are not served yet; remove them from its spec"
	}
	return ""
}

func quotasOf(groups []kueue.ResourceGroup) quota.Quotas {
	out := quota.Quotas{}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				limits := quota.Limits{
					Nominal:   quota.FromQuantity(r.Name, r.NominalQuota),
					Borrowing: quota.Unlimited,
					Lending:   quota.Unlimited,
				}
				if r.BorrowingLimit != nil {
					limits.Borrowing = quota.FromQuantity(r.Name, *r.BorrowingLimit)
				}
				if r.LendingLimit != nil {
					limits.Lending = quota.FromQuantity(r.Name, *r.LendingLimit)
				}
				out[quota.FlavorResource{Flavor: string(f.Name), Resource: string(r.Name)}] = limits
			}
		}
	}
	return out
}
