package simulate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// Setup is the queues and nodes on which jobs are played.
type Setup struct {
	ClusterQueues []*kueue.ClusterQueue
	LocalQueues   []*kueue.LocalQueue
	Cohorts       []*kueue.Cohort
	Flavors       []*kueue.ResourceFlavor
	Topologies    []*kueue.Topology
	Nodes         []*corev1.Node
	Namespaces    []*corev1.Namespace
	Priorities    []*kueue.WorkloadPriorityClass
}

// add adds an object of one of these kinds.
func (s *Setup) add(object client.Object) {
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		s.ClusterQueues = append(s.ClusterQueues, o)
	case *kueue.LocalQueue:
		s.LocalQueues = append(s.LocalQueues, o)
	case *kueue.Cohort:
		s.Cohorts = append(s.Cohorts, o)
	case *kueue.ResourceFlavor:
		s.Flavors = append(s.Flavors, o)
	case *kueue.Topology:
		s.Topologies = append(s.Topologies, o)
	case *corev1.Node:
		s.Nodes = append(s.Nodes, o)
	case *corev1.Namespace:
		s.Namespaces = append(s.Namespaces, o)
	case *kueue.WorkloadPriorityClass:
		s.Priorities = append(s.Priorities, o)
	}
}

// objects returns all objects, in the order in which the engine is told of them.
func (s *Setup) objects() []client.Object {
	return slices.Concat(asObjects(s.Namespaces), asObjects(s.Topologies), asObjects(s.Nodes), asObjects(s.Flavors),
		asObjects(s.Cohorts), asObjects(s.ClusterQueues), asObjects(s.LocalQueues))
}

// asObjects returns the objects of one kind as those of any kind.
func asObjects[T client.Object](of []T) []client.Object {
	all := make([]client.Object, len(of))
	for i := range of {
		all[i] = of[i]
	}
	return all
}

// complete sets what the API server or a kubelet would set.
func (s *Setup) complete() {
	there := map[string]*corev1.Namespace{}
	for _, n := range s.Namespaces {
		there[n.Name] = n
	}
	for _, q := range s.LocalQueues {
		if q.Namespace == "" {
			q.Namespace = metav1.NamespaceDefault
		}
		if there[q.Namespace] == nil {
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Namespace}}
			there[n.Name], s.Namespaces = n, append(s.Namespaces, n)
		}
	}
	for _, n := range s.Namespaces {
		label(n, corev1.LabelMetadataName, n.Name)
	}
	for _, n := range s.Nodes {
		completeNode(n)
	}
}

// completeNode makes the node ready, with what it has as what is allocatable, unless it says otherwise.
func completeNode(n *corev1.Node) {
	if n.Labels[corev1.LabelHostname] == "" {
		label(n, corev1.LabelHostname, n.Name)
	}
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = maps.Clone(n.Status.Capacity)
	}
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = corev1.ResourceList{}
	}
	if _, says := n.Status.Allocatable[corev1.ResourcePods]; !says {
		n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(usualPods, resource.DecimalSI)
	}
	isReady := func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }
	if !slices.ContainsFunc(n.Status.Conditions, isReady) {
		n.Status.Conditions = append(n.Status.Conditions,
			corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
	}
}

// usualPods is how many pods a node takes that does not say so: the kubelet's default.
const usualPods = 110

// label sets a label of the object.
func label(object client.Object, name, value string) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[name] = value
	object.SetLabels(labels)
}

// check returns what is wrong with the objects together.
func (s *Setup) check() error {
	seen := map[string]bool{}
	for _, o := range slices.Concat(s.objects(), asObjects(s.Priorities)) {
		name := fmt.Sprintf("%s %s", kindOf(o), client.ObjectKeyFromObject(o))
		if seen[name] {
			return fmt.Errorf("%s is there twice", nameOf(o))
		}
		seen[name] = true
	}
	has := func(o client.Object) bool {
		return seen[fmt.Sprintf("%s %s", kindOf(o), client.ObjectKeyFromObject(o))]
	}
	for _, q := range s.ClusterQueues {
		if q.Spec.AdmissionChecksStrategy != nil || len(q.Spec.AdmissionChecks) > 0 {
			return fmt.Errorf("%s has admission checks, which are not simulated: remove them", nameOf(q))
		}
		for _, quotas := range quotasOf(q) {
			if quotas.quota.NominalQuota.Sign() < 0 {
				return fmt.Errorf("%s has a negative quota of %s", nameOf(q), quotas.quota.Name)
			}
			if !has(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: quotas.flavor}}) {
				return fmt.Errorf("%s names the ResourceFlavor %s, which is not there", nameOf(q), quotas.flavor)
			}
		}
	}
	for _, q := range slices.Concat(asObjects(s.ClusterQueues), asObjects(s.LocalQueues)) {
		if err := checkTimes(q); err != nil {
			return err
		}
	}
	for _, q := range s.LocalQueues {
		if !has(&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: string(q.Spec.ClusterQueue)}}) {
			return fmt.Errorf("%s names the ClusterQueue %s, which is not there", nameOf(q), q.Spec.ClusterQueue)
		}
	}
	for _, f := range s.Flavors {
		if t := f.Spec.TopologyName; t != nil && !has(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: string(*t)}}) {
			return fmt.Errorf("%s names the Topology %s, which is not there", nameOf(f), *t)
		}
	}
	if len(s.LocalQueues) == 0 {
		return fmt.Errorf("there is no LocalQueue: jobs need one, and its ClusterQueue")
	}
	return nil
}

// checkTimes returns what is wrong with the annotations of a queue about times, which a cluster would refuse.
func checkTimes(queue client.Object) error {
	annotations := queue.GetAnnotations()
	for _, name := range []string{muster.MaxDurationAnnotation, muster.DefaultDurationAnnotation} {
		d, ok := workload.ParseDuration(annotations[name])
		if annotations[name] != "" && (!ok || d > workload.LongestTime) {
			return fmt.Errorf("%s: the annotation %s must be a duration such as 1d12h, at most 10 years, not %q", nameOf(queue),
				name, annotations[name])
		}
	}
	if text, set := annotations[muster.BackfillAnnotation]; set && text != "true" && text != "false" {
		return fmt.Errorf("%s: the annotation %s must be true or false, not %q", nameOf(queue), muster.BackfillAnnotation,
			text)
	}
	return nil
}

// kindOf returns the kind of an object.
func kindOf(object client.Object) string {
	return map[string]string{
		"*v1beta1.ClusterQueue": "ClusterQueue", "*v1beta1.LocalQueue": "LocalQueue", "*v1beta1.Cohort": "Cohort",
		"*v1beta1.ResourceFlavor": "ResourceFlavor", "*v1beta1.Topology": "Topology", "*v1.Node": "Node",
		"*v1.Namespace": "Namespace", "*v1beta1.WorkloadPriorityClass": "WorkloadPriorityClass",
	}[fmt.Sprintf("%T", object)]
}

// nameOf names an object in a message.
func nameOf(object client.Object) string {
	key := client.ObjectKeyFromObject(object)
	if key.Namespace == "" {
		return kindOf(object) + " " + key.Name
	}
	return kindOf(object) + " " + key.String()
}

// flavorQuota is the quota of a resource in a flavor of a ClusterQueue or a Cohort.
type flavorQuota struct {
	flavor string
	quota  *kueue.ResourceQuota
}

// quotasOf returns the quotas of a ClusterQueue or a Cohort, which may be changed.
func quotasOf(queue client.Object) (out []flavorQuota) {
	var groups []kueue.ResourceGroup
	switch q := queue.(type) {
	case *kueue.ClusterQueue:
		groups = q.Spec.ResourceGroups
	case *kueue.Cohort:
		groups = q.Spec.ResourceGroups
	}
	for _, g := range groups {
		for f := range g.Flavors {
			for r := range g.Flavors[f].Resources {
				out = append(out, flavorQuota{string(g.Flavors[f].Name), &g.Flavors[f].Resources[r]})
			}
		}
	}
	return out
}
