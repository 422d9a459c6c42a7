package jobs

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// Facts is an immutable snapshot of what Describe and Plan may use besides the job and its children.
type Facts struct {
	Queues     QueueFacts
	Priorities PriorityFacts
	// Queued holds the pod sets of the job's own Workload, nil if it has none: what the job was last queued for.
	Queued []kueue.PodSet
	// Flavors holds all ResourceFlavors by name.
	Flavors map[string]*kueue.ResourceFlavor
	// Served holds the kinds in Reads.Kinds and Watch.Optional that the cluster serves.
	Served map[schema.GroupResource]bool
	// NodeFeatures holds the features in Reads.NodeFeatures that at least one node has.
	NodeFeatures map[NodeFeature]bool
	// NodesGained is when the nodes last became able to take pods that they could not take before, as far as this
	// operator has seen it: a node came or became ready, or lost a taint. Zero if it has seen none.
	NodesGained time.Time
	// NativeGangs says that kube-scheduler binds the pods of a PodGroup together.
	NativeGangs bool
	// StrictServiceNames says that the names of Services must begin with a letter.
	StrictServiceNames bool
	// Agent is what is needed to run the commands of pods under muster-agent.
	Agent podspec.Agent
}

// Nodes holds, by host name, the existing nodes on which a job was given places. They are shared with the cache and
// must not be modified.
type Nodes map[string]*corev1.Node

// NodeFeature is an amount of a resource, or a label, that a node may have.
type NodeFeature struct {
	Resource corev1.ResourceName
	Label    string
}

// PriorityFacts holds the priority classes of Workloads and of pods, by name.
type PriorityFacts struct {
	Workload map[string]*kueue.WorkloadPriorityClass
	Pod      map[string]*schedulingv1.PriorityClass
}

// OfPods returns the priority of pods that name this class. For "", it is the priority of the cluster's default class,
// else 0. It is unknown if the class does not exist; pods that name it cannot be created.
func (p PriorityFacts) OfPods(class string) (value int32, known bool) {
	found := p.Pod[class]
	switch {
	case class == "":
		if found = p.PodDefault(); found == nil {
			return 0, true
		}
	case found == nil:
		return 0, false
	}
	return found.Value, true
}

// PodDefault returns the class of pods that name none, nil if there is none.
func (p PriorityFacts) PodDefault() *schedulingv1.PriorityClass {
	// Like the API server: of several defaults, the lowest counts.
	isLower := func(a, b *schedulingv1.PriorityClass) bool {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Name, b.Name)) < 0
	}
	var byDefault *schedulingv1.PriorityClass
	for _, class := range p.Pod {
		if class.GlobalDefault && (byDefault == nil || isLower(class, byDefault)) {
			byDefault = class
		}
	}
	return byDefault
}
