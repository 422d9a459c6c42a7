package controller

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/watching"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// reader reads what exists of the jobs of one API, and what they depend on.
type reader[T client.Object] struct {
	api    served[T]
	client client.Client
	// live reads from the API server: pods, which the cache does not keep for the whole cluster, and objects for which
	// a stale cache must not be trusted.
	live client.Reader
	// owns lists the kinds that Plan may create, optional the kinds among them that the cluster may not serve yet.
	owns     []client.Object
	optional []*optionalKind
	// nativeGangs and strictServiceNames are the fields of Settings.
	nativeGangs, strictServiceNames bool
	agent                           func() podspec.Agent // nil for none
	clusterQueues                   watching.ClusterQueues
	nodeGains                       watching.NodeGains
}

// children returns the objects that the job controls, ordered by kind as in Owns. They are shared with the cache, since
// a job may have thousands, and must not be modified.
func (r *reader[T]) children(ctx context.Context, job T) ([]client.Object, error) {
	var out []client.Object
	keys := []string{string(job.GetUID())}
	if r.api.Watch.Targets != nil {
		keys = append(keys, targetKey(job.GetName()))
	}
	for _, kind := range r.childKinds() {
		for _, key := range keys {
			err := each(ctx, r.client, kind, func(child client.Object) { out = append(out, child) },
				client.InNamespace(job.GetNamespace()), client.MatchingFields{controllerIndex: key})
			if err != nil {
				return nil, fmt.Errorf("listing children of %s/%s: %w", job.GetNamespace(), job.GetName(), err)
			}
		}
	}
	return out, nil
}

// childKinds returns an empty object of each kind of children that the cluster serves.
func (r *reader[T]) childKinds() []client.Object {
	out := r.owns
	for _, l := range r.optional {
		if l.seen.Load() {
			out = append(out[:len(out):len(out)], l.Object)
		}
	}
	return out
}

// related returns the objects of Reads.Related that exist. They are shared with the cache: a user may have a job refer
// to many large ones.
func (r *reader[T]) related(ctx context.Context, job T) ([]client.Object, error) {
	if r.api.Reads.Related == nil {
		return nil, nil
	}
	var out []client.Object
	for _, object := range r.api.Reads.Related(job) {
		key := client.ObjectKey{Namespace: cmp.Or(object.GetNamespace(), job.GetNamespace()), Name: object.GetName()}
		switch err := r.client.Get(ctx, key, object, client.UnsafeDisableDeepCopy); {
		case err == nil:
			out = append(out, object)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading %T %s: %w", object, key, err)
		}
	}
	return out, nil
}

// each visits the objects of a kind that the options select. They are the cache's own and must not be changed.
func each(ctx context.Context, c client.Client, kind client.Object, visit func(client.Object),
	which ...client.ListOption) error {
	gvk, err := c.GroupVersionKindFor(kind)
	if err != nil {
		return err
	}
	list, err := c.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return err
	}
	if err := c.List(ctx, list.(client.ObjectList), append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		visit(item.(client.Object))
		return nil
	})
}

// facts reads what Describe and Plan may use. The objects are shared with the cache and must not be modified.
func (r *reader[T]) facts(ctx context.Context, job T) (jobs.Facts, error) {
	namespace := job.GetNamespace()
	var (
		local    kueue.LocalQueueList
		cluster  map[string]*kueue.ClusterQueue
		flavors  kueue.ResourceFlavorList
		classes  kueue.WorkloadPriorityClassList
		podClass schedulingv1.PriorityClassList
		ns       corev1.Namespace
	)
	shared := client.UnsafeDisableDeepCopy
	for _, read := range []func() error{
		func() error { return r.client.Get(ctx, client.ObjectKey{Name: namespace}, &ns) },
		func() error { return r.client.List(ctx, &local, client.InNamespace(namespace), shared) },
		func() (err error) { cluster, err = r.clusterQueues.Read(ctx, r.client); return err },
		func() error { return r.client.List(ctx, &flavors, shared) },
		func() error { return r.client.List(ctx, &classes, shared) },
		func() error { return r.client.List(ctx, &podClass, shared) },
	} {
		if err := read(); err != nil {
			return jobs.Facts{}, fmt.Errorf("reading the facts that jobs depend on: %w", err)
		}
	}
	served, err := r.servedKinds(ctx)
	if err != nil {
		return jobs.Facts{}, err
	}
	features, err := r.features(ctx, job)
	if err != nil {
		return jobs.Facts{}, err
	}
	var agent podspec.Agent
	if r.agent != nil {
		agent = r.agent()
	}
	return jobs.Facts{
		Served:       served,
		NodeFeatures: features,
		NodesGained:  r.nodeGains.Last(),
		Queues:       jobs.QueueFacts{Local: watching.ByName(local.Items), Cluster: cluster, Namespace: &ns},
		Priorities:   jobs.PriorityFacts{Workload: watching.ByName(classes.Items), Pod: watching.ByName(podClass.Items)},
		Flavors:      watching.ByName(flavors.Items),
		NativeGangs:  r.nativeGangs,
		Agent:        agent,

		StrictServiceNames: r.strictServiceNames,
	}, nil
}

// servedKinds returns which of the kinds in Reads.Kinds and Watch.Optional the cluster serves.
func (r *reader[T]) servedKinds(ctx context.Context) (map[schema.GroupResource]bool, error) {
	if len(r.api.Reads.Kinds)+len(r.optional) == 0 {
		return nil, nil
	}
	served := make(map[schema.GroupResource]bool, len(r.api.Reads.Kinds)+len(r.optional))
	for _, l := range r.optional {
		served[l.Resource] = l.seen.Load()
	}
	for _, kind := range r.api.Reads.Kinds {
		definition := &metav1.PartialObjectMetadata{}
		definition.SetGroupVersionKind(definitionKind)
		switch err := r.client.Get(ctx, client.ObjectKey{Name: kind.String()}, definition); {
		case err == nil:
			served[kind] = definition.DeletionTimestamp.IsZero()
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("asking whether %s are served: %w", kind, err)
		}
	}
	return served, nil
}

// features returns which of the features in Reads.NodeFeatures some node has.
func (r *reader[T]) features(ctx context.Context, job T) (map[jobs.NodeFeature]bool, error) {
	if r.api.Reads.NodeFeatures == nil {
		return nil, nil
	}
	asked := r.api.Reads.NodeFeatures(job)
	if len(asked) == 0 {
		return nil, nil
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("asking what nodes have: %w", err)
	}
	found := make(map[jobs.NodeFeature]bool, len(asked))
	for i := range nodes.Items {
		for _, feature := range asked {
			if !found[feature] && hasFeature(&nodes.Items[i], feature) {
				found[feature] = true
			}
		}
		if len(found) == len(asked) {
			break
		}
	}
	return found, nil
}

// hasFeature reports whether the node has the feature.
func hasFeature(node *corev1.Node, n jobs.NodeFeature) bool {
	if n.Label != "" {
		_, labelled := node.Labels[n.Label]
		return labelled
	}
	amount := node.Status.Allocatable[n.Resource]
	return amount.Sign() > 0
}

// exists reports whether the object exists, by a live read, and the job controls it. A nil object does not.
func (r *reader[T]) exists(ctx context.Context, job T, object client.Object) (bool, error) {
	if object == nil {
		return false, nil
	}
	found := object.DeepCopyObject().(client.Object)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return metav1.IsControlledBy(found, job), nil
}

// nodes returns the nodes on which the Workload was given places.
func (r *reader[T]) nodes(ctx context.Context, w *kueue.Workload) (jobs.Nodes, error) {
	if w == nil || !workload.HoldsQuota(w) {
		return nil, nil
	}
	out := jobs.Nodes{}
	for _, a := range w.Status.Admission.PodSetAssignments {
		for _, place := range jobs.PlacesOf(a.TopologyAssignment) {
			name := place.Node()
			if _, known := out[name]; known || name == "" {
				continue
			}
			var found corev1.NodeList
			if err := r.client.List(ctx, &found, client.MatchingFields{jobs.HostnameIndex: name},
				client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("reading the node %s: %w", name, err)
			}
			if len(found.Items) == 1 { // if two nodes share the host name, it is unknown which of them will run the pod
				out[name] = &found.Items[0]
			}
		}
	}
	return out, nil
}

// podsOf returns the pods of the job that the API needs. They are shared with the cache.
func (r *reader[T]) podsOf(ctx context.Context, job T) ([]*corev1.Pod, error) {
	if r.api.Reads.Pods == nil {
		return nil, nil
	}
	labels := r.api.Reads.Pods.Labels(job)
	if labels == nil {
		return nil, nil
	}
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(job.GetNamespace()), client.UnsafeDisableDeepCopy,
		client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", client.ObjectKeyFromObject(job), err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// optionalKind is an OptionalKind with its state: known says that it has been found out whether the cluster serves the
// kind, seen that its objects are cached. No job is reconciled before that is known: its children of this kind would
// seem to be missing.
type optionalKind struct {
	jobs.OptionalKind
	known, seen atomic.Bool
}
