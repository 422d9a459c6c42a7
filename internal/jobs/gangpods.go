package jobs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

// JoinGangs turns the pods that the plan creates for an admitted job into gangs, if the cluster supports them: one for
// each pod set, of which least says how many pods must run. Their PodGroups are written before the pods.
//
// The MinCount of a gang is at most the number of its pods: otherwise it would wait forever for pods that have ended or
// that terminate on a lost node. Gated pods join no gang, since kube-scheduler would hold back the whole gang for one
// of them. Nor do pods of other schedulers, pods whose user has set a scheduling group, pods of pod sets of which one
// pod is enough, and pods whose places nobody else can take: for these a PodGroup would only cost two writes.
func JoinGangs[T client.Object](seen Seen[T], kind schema.GroupVersionKind, least map[string]int32, plan *Plan) {
	if !seen.Facts.NativeGangs || seen.Admission.Grant != Admitted {
		return
	}
	gangs := gangSet{}
	needed := neededTogether(seen.Admission, least)
	names := map[string]string{}
	for podSet := range least {
		name := seen.Job.GetName() + "-" + podSet + "." + strings.ToLower(kind.Kind)
		if len(validation.IsDNS1123Subdomain(name)) == 0 {
			names[podSet] = name
		}
	}
	for _, pod := range podsCreated(plan.Writes) {
		podSet := pod.Labels[kueue.PodSetLabel]
		if name := names[podSet]; name != "" && mayJoin(&pod.Spec) && needed(podSet) > 1 {
			group, class := seen.Facts.Priorities.GangFor(name, pod.Spec.PriorityClassName, seen.Children)
			InPodGroup(&pod.Spec, group)
			pod.Spec.PriorityClassName = class
			gang := gangs.of(group, podSet)
			gang.PriorityClass = class
			gang.count(pod)
		}
	}
	gangs.countThere(ChildrenOf[*corev1.Pod](seen.Children), podsDeleted(plan.Writes), names)
	for _, name := range slices.Sorted(maps.Keys(gangs)) {
		gang := gangs[name]
		if !gang.Waiting {
			continue // no pods are waiting for the scheduler
		}
		if most := max(1, needed(gang.podSet)); plan.Unfinished || gang.Pods > most {
			gang.Pods = most // pods that are still to be created are waited for
		}
		if write, differs := gang.Ensure(seen.Job, kind, seen.Children); differs {
			plan.AddFirst(write)
		}
	}
}

// neededTogether returns a function that says how many pods of a pod set kube-scheduler must bind together: as many as
// must run, and one where others cannot take their places. If the pods have a PodGroup from an earlier start, it then
// holds nobody back.
func neededTogether(admission Admission, least map[string]int32) func(podSet string) int32 {
	known := map[string]int32{}
	return func(podSet string) int32 {
		if _, ok := known[podSet]; !ok {
			known[podSet] = least[podSet]
			if least[podSet] > 1 && admission.PodSets[podSet].ClosedToOthers() {
				known[podSet] = 1
			}
		}
		return known[podSet]
	}
}

// gangSet holds gangs by the names of their PodGroups.
type gangSet map[string]*podSetGang

type podSetGang struct {
	Gang
	podSet string
}

// countThere adds existing pods. names gives the PodGroup of each pod set, going the pods that the plan deletes.
func (g gangSet) countThere(pods []*corev1.Pod, going map[string]bool, names map[string]string) {
	for _, pod := range pods {
		podSet := pod.Labels[kueue.PodSetLabel]
		if name := names[podSet]; name == "" || podspec.HasEnded(pod) || !IsOfGang(&pod.Spec, name) {
			continue
		}
		gang := g.of(*pod.Spec.SchedulingGroup.PodGroupName, podSet)
		switch goes := going[pod.Name] || !pod.DeletionTimestamp.IsZero(); {
		case !goes:
			gang.count(pod)
		case pod.Spec.NodeName == "":
			gang.Pods++ // it is deleted at once, and a replacement takes its place
		}
	}
}

// of returns the gang of this name, creating it if necessary.
func (g gangSet) of(name, podSet string) *podSetGang {
	if g[name] == nil {
		g[name] = &podSetGang{Gang{Name: name}, podSet}
	}
	return g[name]
}

// count adds a pod.
func (g *Gang) count(pod *corev1.Pod) {
	g.Pods++
	g.Waiting = g.Waiting || pod.Spec.NodeName == ""
}

// mayJoin reports whether kube-scheduler binds the pods as soon as it can, and may bind them together.
func mayJoin(spec *corev1.PodSpec) bool {
	return spec.SchedulingGroup == nil && len(spec.SchedulingGates) == 0 &&
		cmp.Or(spec.SchedulerName, corev1.DefaultSchedulerName) == corev1.DefaultSchedulerName
}

// podsCreated returns the pods that the writes create.
func podsCreated(writes []write.Write) []*corev1.Pod {
	var out []*corev1.Pod
	for _, w := range writes {
		if pod, ok := w.Object().(*corev1.Pod); ok && w.Verb() == write.VerbCreate {
			out = append(out, pod)
		}
	}
	return out
}

// podsDeleted returns the names of the pods that the writes delete.
func podsDeleted(writes []write.Write) map[string]bool {
	out := map[string]bool{}
	for _, w := range writes {
		if pod, ok := w.Object().(*corev1.Pod); ok && w.Verb() == write.VerbDelete {
			out[pod.Name] = true
		}
	}
	return out
}
