package jobs

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// Gang is a group of pods that kube-scheduler binds only if at least Pods of them find a node.
type Gang struct {
	// Name is the name of the PodGroup.
	Name string
	// Pods is how many pods must find a node.
	Pods int32
	// Waiting says that some pods are not bound yet. Once all are, MinCount does not matter any more and is not updated.
	Waiting       bool
	PriorityClass string
}

// ClosedToOthers reports whether the pod set has a place on a node for each of its pods, and all of these nodes are
// closed to ordinary pods by a taint. A PodGroup would only repeat then what the engine has decided: no pod of others
// comes in between. It is not for free, as kube-scheduler, which schedules one group after another, waits for a write
// to each of them.
func (p PodSetAdmission) ClosedToOthers() bool {
	if len(p.Places) == 0 {
		return false
	}
	for _, place := range p.Places {
		if node := p.Nodes[place.Node()]; node == nil || !slices.ContainsFunc(node.Spec.Taints, keepsOthersAway) {
			return false
		}
	}
	return true
}

// keepsOthersAway reports whether the taint keeps pods away that do not name it. Kubernetes sets taints of its own on
// nodes that have a problem or are drained, and removes them again: these say nothing about for whom the node is.
func keepsOthersAway(taint corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule &&
		!strings.HasPrefix(taint.Key, "node.kubernetes.io/") &&
		!strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/")
}

// Ensure returns the write that creates the gang's PodGroup or corrects its MinCount, and whether anything is to be
// written. The job controls the PodGroup, which is garbage collected with it.
func (g Gang) Ensure(job client.Object, kind schema.GroupVersionKind, children []client.Object) (write.Write, bool) {
	there := podGroupOf(g.Name, children)
	switch {
	case there == nil:
		return write.Create(g.podGroup(job, kind)).OrWarn(FailedCreate), true
	case there.Spec.SchedulingPolicy.Gang == nil:
		// A user changed the policy, and kube-scheduler follows it. A PodGroup that is being deleted stays in force
		// too, as long as its pods exist.
	case g.Pods > there.Spec.SchedulingPolicy.Gang.MinCount ||
		g.Pods < there.Spec.SchedulingPolicy.Gang.MinCount && g.Waiting:
		other := there.DeepCopy()
		other.Spec.SchedulingPolicy.Gang.MinCount = g.Pods
		return write.Change(there, other), true
	}
	return write.Write{}, false
}

// podGroupOf returns the PodGroup of this name, nil if it does not exist.
func podGroupOf(name string, children []client.Object) *schedulingv1beta1.PodGroup {
	for _, group := range ChildrenOf[*schedulingv1beta1.PodGroup](children) {
		if group.Name == name {
			return group
		}
	}
	return nil
}

func (g Gang) podGroup(job client.Object, kind schema.GroupVersionKind) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: replicas.Owned(job, kind, g.Name, nil),
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: g.Pods},
			},
			PriorityClassName: g.PriorityClass,
		},
	}
}

// InPodGroup makes the pods members of the named PodGroup.
func InPodGroup(spec *corev1.PodSpec, name string) {
	spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(name)}
}

// IsInPodGroup reports whether the pods are members of the named PodGroup.
func IsInPodGroup(spec *corev1.PodSpec, name string) bool {
	return spec.SchedulingGroup != nil && ptr.Deref(spec.SchedulingGroup.PodGroupName, "") == name
}

// RelaxPodGroups lowers the MinCount of a job's PodGroups to one, for jobs whose PodGroups are not maintained any more:
// if pods of the gang have ended, MinCount could not be reached again, and replacement pods would never be scheduled.
func RelaxPodGroups(children []client.Object) (writes []write.Write) {
	for _, there := range ChildrenOf[*schedulingv1beta1.PodGroup](children) {
		if gang := there.Spec.SchedulingPolicy.Gang; gang == nil || gang.MinCount <= 1 {
			continue
		}
		other := there.DeepCopy()
		other.Spec.SchedulingPolicy.Gang.MinCount = 1
		writes = append(writes, write.Change(there, other))
	}
	return writes
}
