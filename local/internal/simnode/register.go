package simnode

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// registrations is the number of concurrent writes of Nodes: enough to keep an API server busy, and few enough that it
// does not reject them.
const registrations = 32

// register creates or updates count Nodes according to the model, and deletes superfluous ones of an earlier run. What
// others added to a Node (labels, taints, conditions) is kept.
func register(ctx context.Context, client kubernetes.Interface, m model, count int) error {
	existing, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: LabelSimulated + "=true"})
	if err != nil {
		return fmt.Errorf("listing the simulated nodes of an earlier run: %w", err)
	}
	byName := make(map[string]*corev1.Node, len(existing.Items))
	for i := range existing.Items {
		byName[existing.Items[i].Name] = &existing.Items[i]
	}

	now := time.Now()
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(registrations)
	for name := range byName {
		if index, ours := nodeIndex(name); ours && index >= count {
			writes.Go(func() error { return unregister(ctx, client, name) })
		}
	}
	for index := range count {
		writes.Go(func() error {
			want := m.node(index, now)
			return registerNode(ctx, client, want, byName[want.Name])
		})
	}
	return writes.Wait()
}

func unregister(ctx context.Context, client kubernetes.Interface, name string) error {
	err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting simulated node %s, which is beyond the number asked for: %w", name, err)
	}
	return nil
}

// registerNode creates the Node, or updates an existing one if it differs.
func registerNode(ctx context.Context, client kubernetes.Interface, want, have *corev1.Node) (err error) {
	nodes := client.CoreV1().Nodes()
	if have == nil {
		// The API server accepts the status of a new Node at its creation.
		have, err = nodes.Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			have, err = nodes.Get(ctx, want.Name, metav1.GetOptions{})
		}
	}
	if err == nil {
		err = bringInLine(ctx, client, have, want)
	}
	if apierrors.IsConflict(err) {
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return bringInLine(ctx, client, have, want)
		})
	}
	if err != nil {
		return fmt.Errorf("registering simulated node %s: %w", want.Name, err)
	}
	return nil
}

// bringInLine writes what differs, the status first: while a Node is not Ready, the node lifecycle controller restores
// the taints that the second write removes.
func bringInLine(ctx context.Context, client kubernetes.Interface, have, want *corev1.Node) (err error) {
	if next, differs := withStatus(have, want); differs {
		if have, err = client.CoreV1().Nodes().UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if next, differs := withSpec(have, want); differs {
		_, err = client.CoreV1().Nodes().Update(ctx, next, metav1.UpdateOptions{})
	}
	return err
}

// withStatus returns the Node with the wanted size, address and features, and Ready; differs says whether it was not so
// before.
func withStatus(have, want *corev1.Node) (next *corev1.Node, differs bool) {
	next = have.DeepCopy()
	next.Status.Capacity = want.Status.Capacity
	next.Status.Allocatable = want.Status.Allocatable
	next.Status.Addresses = want.Status.Addresses
	next.Status.DeclaredFeatures = want.Status.DeclaredFeatures
	for _, condition := range want.Status.Conditions {
		at := slices.IndexFunc(next.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == condition.Type })
		switch {
		case at < 0:
			next.Status.Conditions = append(next.Status.Conditions, condition)
		case next.Status.Conditions[at].Status != condition.Status:
			next.Status.Conditions[at] = condition
		}
	}
	return next, !apiequality.Semantic.DeepEqual(have.Status, next.Status)
}

// withSpec returns the Node with the wanted labels and taint, and without the taints of a Node that is not Ready, one
// of which the API server puts on each new Node; differs says whether it was not so before.
func withSpec(have, want *corev1.Node) (next *corev1.Node, differs bool) {
	next = have.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	for _, key := range []string{labelGPUPresent, labelGPUProduct, labelGPUCount, labelGPUMemory} {
		delete(next.Labels, key) // an earlier run may have had other machines
	}
	maps.Copy(next.Labels, want.Labels)
	next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable || t.MatchTaint(&simulatedTaint)
	})
	next.Spec.Taints = append(next.Spec.Taints, simulatedTaint)
	return next, !maps.Equal(have.Labels, next.Labels) || !sameTaints(have.Spec.Taints, next.Spec.Taints)
}

// sameTaints compares taints without regard to their order.
func sameTaints(a, b []corev1.Taint) bool {
	holds := func(list []corev1.Taint, t corev1.Taint) bool {
		return slices.ContainsFunc(list, func(other corev1.Taint) bool {
			return other.Key == t.Key && other.Effect == t.Effect && other.Value == t.Value
		})
	}
	within := func(a, b []corev1.Taint) bool {
		return !slices.ContainsFunc(a, func(t corev1.Taint) bool { return !holds(b, t) })
	}
	return len(a) == len(b) && within(a, b)
}
