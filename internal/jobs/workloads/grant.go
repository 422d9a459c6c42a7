package workloads

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// Admission returns what the job was granted, with these nodes of its places.
func (j Job) Admission(s State, nodes jobs.Nodes) jobs.Admission {
	granting := s.Own
	if j.followsPrebuilt(s.Followed) {
		granting = withJobTemplates(s.Own, s.Described.PodSets)
	}
	out := grantOf(granting, s.Facts.Flavors, nodes)
	out = limited(out, s.Own, s.Facts.Queues)
	out.Deactivated = s.Own != nil && !workload.IsActive(s.Own)
	return out
}

// grantOf returns what the Workload grants its job. A Workload that is being deleted stops its job, as an eviction
// does; a finished one grants nothing any more.
func grantOf(w *kueue.Workload, flavors map[string]*kueue.ResourceFlavor, nodes jobs.Nodes) jobs.Admission {
	switch {
	case w == nil:
		return jobs.Admission{Grant: jobs.Waiting}
	case !workload.HoldsQuota(w) || workload.IsFinished(w):
		return jobs.Admission{Grant: jobs.Waiting, Why: whyWaiting(w)}
	case workload.IsEvicted(w) || !w.DeletionTimestamp.IsZero():
		return jobs.Admission{Grant: jobs.Stopping}
	case !workload.IsAdmitted(w):
		return jobs.Admission{Grant: jobs.Waiting}
	}
	out := jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{}, UnreadySince: unreadySince(w),
		NeedsDigest: w.Annotations[muster.AskedAnnotation]}
	podSets := map[kueue.PodSetReference]*kueue.PodSet{}
	for podSet := range pointers.To(w.Spec.PodSets) {
		podSets[podSet.Name] = podSet
	}
	for a := range pointers.To(w.Status.Admission.PodSetAssignments) {
		podSet := podSets[a.Name]
		if podSet == nil {
			continue // the API rejects an assignment like this
		}
		granted := podSetGrantOf(w, podSet, a, nodes)
		for _, name := range sortedFlavors(a) {
			flavor := flavors[name]
			if flavor == nil {
				out.MissingFlavor = name
				continue
			}
			maps.Copy(granted.NodeSelector, flavor.Spec.NodeLabels)
			granted.Tolerations = append(granted.Tolerations, flavor.Spec.Tolerations...)
		}
		if conflict := addUpdates(&granted.Injection, a.Name, podSet.Template, w.Status.AdmissionChecks); conflict != "" {
			out.Conflict = conflict
		}
		out.PodSets[string(a.Name)] = granted
	}
	return out
}

// podSetGrantOf returns what the assignment grants the pod set, without what its flavors and admission checks add.
func podSetGrantOf(w *kueue.Workload, podSet *kueue.PodSet, a *kueue.PodSetAssignment,
	nodes jobs.Nodes) jobs.PodSetAdmission {
	left, count := workload.PodsHoldingQuota(w, a)
	granted := jobs.PodSetAdmission{
		Count: count, Asked: podSet.Count, Left: left,
		Template: &podSet.Template, Tied: workload.IsTied(podSet),
		Injection: podspec.Injection{
			Labels:       map[string]string{kueue.PodSetLabel: string(a.Name)},
			NodeSelector: map[string]string{},
		},
	}
	if a.TopologyAssignment != nil {
		granted.Annotations = map[string]string{kueue.WorkloadAnnotation: w.Name}
		granted.Places = jobs.PlacesOf(a.TopologyAssignment)
		granted.Pods, granted.Nodes, granted.SliceSize = podSet.Template.Spec, nodes,
			jobs.SmallestSlice(podSet.TopologyRequest)
	}
	return granted
}

// whyWaiting returns what the queue says about a Workload without quota, "" if nothing yet.
func whyWaiting(w *kueue.Workload) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil &&
		c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}

// unreadySince returns since when not all pods of an admitted Workload have been ready, zero if all are.
func unreadySince(w *kueue.Workload) time.Time {
	since := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime.Time
	if ready := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady); ready != nil {
		switch {
		case ready.Status == metav1.ConditionTrue:
			return time.Time{}
		case ready.Reason == kueue.WorkloadWaitForRecovery, ready.LastTransitionTime.After(since):
			return ready.LastTransitionTime.Time // a pod was lost, or a later stage began
		}
	}
	return since
}

// addUpdates adds what ready admission checks ask for the pods of the pod set. It returns what cannot be added, "" if
// all can: a check must not change existing values.
func addUpdates(in *podspec.Injection, podSet kueue.PodSetReference, template corev1.PodTemplateSpec,
	checks []kueue.AdmissionCheckState) string {
	for _, check := range checks {
		if check.State != kueue.CheckStateReady {
			continue
		}
		for _, update := range check.PodSetUpdates {
			if update.Name != podSet {
				continue
			}
			for _, into := range []struct {
				what         string
				had, added   map[string]string
				destinations *map[string]string
			}{
				{"label", template.Labels, update.Labels, &in.Labels},
				{"annotation", template.Annotations, update.Annotations, &in.Annotations},
				{"node selector", template.Spec.NodeSelector, update.NodeSelector, &in.NodeSelector},
			} {
				if key, old := conflictingKey(into.added, into.had, *into.destinations); key != "" {
					return fmt.Sprintf("the admission check %s sets the %s %s of pod set %s to %q, but it is %q already",
						check.Name, into.what, key, podSet, into.added[key], old)
				}
				if len(into.added) > 0 && *into.destinations == nil {
					*into.destinations = map[string]string{}
				}
				maps.Copy(*into.destinations, into.added)
			}
			in.Tolerations = append(in.Tolerations, update.Tolerations...)
		}
	}
	return ""
}

// conflictingKey returns the first key, by name, for which one of the maps has another value, and that value; "" if
// there is none.
func conflictingKey(added map[string]string, had ...map[string]string) (key, old string) {
	for _, key := range slices.Sorted(maps.Keys(added)) {
		for _, have := range had {
			if old, ok := have[key]; ok && old != added[key] {
				return key, old
			}
		}
	}
	return "", ""
}

// sortedFlavors returns the distinct flavors of the assignment, sorted by name.
func sortedFlavors(a *kueue.PodSetAssignment) []string {
	names := sets.New[string]()
	for _, flavor := range a.Flavors {
		names.Insert(string(flavor))
	}
	return sets.List(names)
}

// CannotStart returns an event that says why an admitted job gets no pods. It is also reported, for as long as it
// holds, if the Workload was finished for that reason.
func CannotStart(a jobs.Admission, own *kueue.Workload) []write.Event {
	why := a.Conflict
	if own != nil {
		if c := meta.FindStatusCondition(own.Status.Conditions, kueue.WorkloadFinished); c != nil &&
			c.Reason == kueue.WorkloadFinishedReasonFailedToStart {
			why = c.Message
		}
	}
	switch {
	case a.MissingFlavor != "":
		return []write.Event{write.Obstacle(kueue.ClusterQueueActiveReasonFlavorNotFound,
			fmt.Sprintf("No pods can be started: the ResourceFlavor %s assigned to the job does not exist. Create it again, or delete the job", a.MissingFlavor))}
	case why != "":
		return []write.Event{write.Obstacle(kueue.WorkloadFinishedReasonFailedToStart, "No pods can be started: "+why)}
	}
	return nil
}
