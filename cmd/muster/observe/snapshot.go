package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/config"
)

// SnapshotAll reads all objects that decisions depend on, with the user's rights. A namespaced kind that the user may
// not list in all namespaces is read in the given one. Every kind of which objects may be missing is noted in Unseen.
func (c *Cluster) SnapshotAll(ctx context.Context, namespace string) (*view.Snapshot, error) {
	var (
		lists          jobLists
		clusterQueues  kueue.ClusterQueueList
		cohorts        kueue.CohortList
		flavors        kueue.ResourceFlavorList
		checks         kueue.AdmissionCheckList
		namespaces     corev1.NamespaceList
		limitRanges    corev1.LimitRangeList
		runtimeClasses nodev1.RuntimeClassList
	)
	snapshot := &view.Snapshot{}
	err := c.readAll(ctx, snapshot, namespace, slices.Concat(lists.queuedKinds(), []kindRead{
		clusterQueueKind(&clusterQueues),
		{name: "cohorts", list: &cohorts, decides: true},
		{name: "resourceflavors", list: &flavors, decides: true},
		{name: "admissionchecks", list: &checks, decides: true},
		{name: "namespaces", list: &namespaces, decides: true},
		{name: "limitranges", list: &limitRanges, namespaced: true}, // the LimitRanges of the namespace suffice
		{name: "runtimeclasses", list: &runtimeClasses, decides: true},
	}, lists.jobKinds()))
	if err != nil {
		return nil, err
	}
	lists.put(snapshot)
	snapshot.ClusterQueues, snapshot.Cohorts, snapshot.ResourceFlavors, snapshot.AdmissionChecks = clusterQueues.Items,
		cohorts.Items, flavors.Items, checks.Items
	snapshot.Namespaces, snapshot.LimitRanges, snapshot.RuntimeClasses = namespaces.Items, limitRanges.Items,
		runtimeClasses.Items
	snapshot.Configuration, snapshot.Assumed = c.configuration, c.assumed
	if snapshot.Places() {
		err = c.readNodes(ctx, snapshot, namespace)
	}
	return snapshot, err
}

// readNodes reads the objects that placement depends on. A cluster may have very many pods, so it is called only if a
// flavor is placed on nodes.
func (c *Cluster) readNodes(ctx context.Context, snapshot *view.Snapshot, namespace string) error {
	var (
		topologies kueue.TopologyList
		nodes      corev1.NodeList
		pods       corev1.PodList
	)
	takeRoom := client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie(
		"spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")}
	err := c.readAll(ctx, snapshot, namespace, []kindRead{
		{name: "topologies", list: &topologies, decides: true},
		{name: "nodes", list: &nodes, decides: true},
		{name: "pods", list: &pods, namespaced: true, decides: true, only: takeRoom},
	})
	snapshot.Topologies, snapshot.Nodes, snapshot.Bound = topologies.Items, nodes.Items, pods.Items
	return err
}

// readAll fills the lists of the kinds, and notes in Unseen the kinds of which the list is incomplete.
func (c *Cluster) readAll(ctx context.Context, snapshot *view.Snapshot, namespace string, kinds []kindRead) error {
	for _, kind := range kinds {
		unreadable, whole, err := c.list(ctx, kind, namespace)
		snapshot.Unreadable = append(snapshot.Unreadable, unreadable...)
		switch {
		case kind.needed && errors.Is(err, errNotServed):
			return ErrNotInstalled
		case errors.Is(err, errNotServed), apierrors.IsForbidden(err) && !kind.needed:
		case err != nil:
			return fmt.Errorf("list %s: %w", kind.name, err)
		}
		if (apierrors.IsForbidden(err) || !whole && kind.decides) && !slices.Contains(snapshot.Unseen, kind.name) {
			snapshot.Unseen = append(snapshot.Unseen, kind.name)
		}
	}
	return nil
}

// readConfiguration returns the configuration that the operator published. If it cannot be read, readConfiguration
// returns the default one, and assumed says why.
func readConfiguration(ctx context.Context, reader client.Reader) (_ *v1alpha1.Configuration, assumed string) {
	var published corev1.ConfigMap
	name := client.ObjectKey{Namespace: config.PublishedNamespace, Name: config.PublishedName}
	if err := reader.Get(ctx, name, &published); apierrors.IsNotFound(err) {
		return config.Default(), fmt.Sprintf("the operator has not published its own in ConfigMap %s", name)
	} else if err != nil {
		return config.Default(), fmt.Sprintf("that of the operator cannot be read: %v", err)
	}
	configured, err := config.FromPublished(&published)
	if err != nil {
		return config.Default(), err.Error()
	}
	return configured, ""
}

// errNotServed is returned by list for a kind that the cluster does not serve.
var errNotServed = errors.New("the kind is not served")

// list reads all objects of a kind, or only the objects in the namespace if the user may not list more. whole reports
// whether the list is complete.
func (c *Cluster) list(ctx context.Context, kind kindRead,
	namespace string) (unreadable []view.Unreadable, whole bool, err error) {
	var only []client.ListOption
	if kind.only != nil {
		only = append(only, kind.only)
	}
	unreadable, err = c.read(ctx, kind, only...)
	switch {
	case isNotServed(err):
		return nil, true, errNotServed // a kind that is not served has no objects
	case apierrors.IsForbidden(err) && kind.namespaced:
		unreadable, err = c.read(ctx, kind, append(only, client.InNamespace(namespace))...)
		return unreadable, false, err
	}
	return unreadable, err == nil, err
}
