package decisions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
)

// placeReader reads the topologies of flavors and the labels of nodes that a TopologyAssignment needs.
type placeReader struct{ client.Reader }

// assignments returns the places of each placed pod set in the form of the API, by pod set. before is what the Workload
// has, nil if it is not admitted: it still describes a topology or a node that is gone, since places of pods that have
// ended are kept there. known is false if a topology or node that they refer to does not exist, and before has it not.
func (pr placeReader) assignments(ctx context.Context, given *engine.Admission,
	before *kueue.Admission) (out map[string]*kueue.TopologyAssignment, known bool, err error) {
	for i := range given.PodSets {
		a := &given.PodSets[i]
		if len(a.Places) == 0 {
			continue
		}
		had, labels := describedBy(before, a.PodSet)
		levels, err := pr.levels(ctx, a)
		if levels == nil {
			levels = had
		}
		if err != nil || levels == nil {
			return nil, false, err
		}
		if err := pr.addLabels(ctx, a, levels, labels); err != nil {
			return nil, false, err
		}
		assignment := translate.TopologyAssignment(a.Places, levels,
			func(host string) map[string]string { return labels[host] })
		if assignment == nil {
			return nil, false, nil
		}
		if out == nil {
			out = map[string]*kueue.TopologyAssignment{}
		}
		out[a.PodSet] = assignment
	}
	return out, true, nil
}

// describedBy returns what the present assignment of a pod set says of its topology: the levels, nil if there are no
// nodes in it, and the labels of the nodes by hostname.
func describedBy(before *kueue.Admission, podSet string) (levels []string, labels map[string]map[string]string) {
	labels = map[string]map[string]string{}
	if before == nil {
		return nil, labels
	}
	at := slices.IndexFunc(before.PodSetAssignments,
		func(a kueue.PodSetAssignment) bool { return string(a.Name) == podSet })
	if at < 0 || before.PodSetAssignments[at].TopologyAssignment == nil {
		return nil, labels
	}
	t := before.PodSetAssignments[at].TopologyAssignment
	last := len(t.Levels) - 1
	if last < 0 || t.Levels[last] != place.Hostname {
		return nil, labels
	}
	for _, domain := range t.Domains {
		if len(domain.Values) != len(t.Levels) {
			continue
		}
		of := make(map[string]string, last)
		for i, level := range t.Levels[:last] {
			of[level] = domain.Values[i]
		}
		labels[domain.Values[last]] = of
	}
	if last == 0 {
		return t.Levels, labels
	}
	return t.Levels[:last], labels // the hostname was added to them
}

// levels returns the levels of the topology by which the pod set was placed, nil if it no longer exists.
func (pr placeReader) levels(ctx context.Context, a *engine.Assignment) ([]string, error) {
	for _, name := range slices.Compact(slices.Sorted(maps.Values(a.Flavors))) {
		var f kueue.ResourceFlavor
		if err := pr.Get(ctx, client.ObjectKey{Name: name}, &f, client.UnsafeDisableDeepCopy); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("reading the ResourceFlavor %s: %w", name, err)
		}
		if f.Spec.TopologyName == nil {
			continue
		}
		var t kueue.Topology
		err := pr.Get(ctx, client.ObjectKey{Name: string(*f.Spec.TopologyName)}, &t, client.UnsafeDisableDeepCopy)
		if err == nil {
			return translate.TopologyOf(&t).Levels, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the Topology %s: %w", *f.Spec.TopologyName, err)
		}
	}
	return nil, nil
}

// addLabels adds the labels of the nodes of the places that exist, by hostname, if the levels need them.
func (pr placeReader) addLabels(ctx context.Context, a *engine.Assignment, levels []string,
	labels map[string]map[string]string) error {
	if levels[len(levels)-1] == place.Hostname {
		return nil
	}
	for _, p := range a.Places {
		var node corev1.Node
		err := pr.Get(ctx, client.ObjectKey{Name: p.Node}, &node, client.UnsafeDisableDeepCopy)
		switch {
		case err == nil && hostOf(&node) == p.Node:
			labels[p.Node] = node.Labels
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading the Node %s: %w", p.Node, err)
		default: // the hostname differs from the Node's name
			var list corev1.NodeList
			if err := pr.List(ctx, &list, client.MatchingLabels{place.Hostname: p.Node},
				client.UnsafeDisableDeepCopy); err != nil {
				return fmt.Errorf("looking for the node %s: %w", p.Node, err)
			}
			if len(list.Items) > 0 {
				labels[p.Node] = list.Items[0].Labels
			}
		}
	}
	return nil
}

// hostOf returns the name that places use for the Node.
func hostOf(node *corev1.Node) string { return cmp.Or(node.Labels[place.Hostname], node.Name) }
