package indexes

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Indexes of the manager's cache, by which the users of an object are found.
const (
	// ReservedIndex finds the unfinished Workloads that hold quota of a ClusterQueue.
	ReservedIndex = "status.admission.clusterQueue"
	// QueueIndex finds the Workloads of a LocalQueue.
	QueueIndex = "spec.queueName"
	// ClusterQueueIndex finds the LocalQueues of a ClusterQueue.
	ClusterQueueIndex = "spec.clusterQueue"
	// FlavorIndex finds the ClusterQueues that list a ResourceFlavor.
	FlavorIndex = "spec.resourceGroups.flavors.name"
)

// AddIndexes adds the indexes to the cache.
func AddIndexes(indexer client.FieldIndexer) error {
	for _, index := range []struct {
		of   client.Object
		name string
		keys client.IndexerFunc
	}{
		{&kueue.Workload{}, ReservedIndex, ReservedQueue},
		{&kueue.Workload{}, QueueIndex,
			func(o client.Object) []string { return []string{string(o.(*kueue.Workload).Spec.QueueName)} }},
		{&kueue.LocalQueue{}, ClusterQueueIndex,
			func(o client.Object) []string { return []string{string(o.(*kueue.LocalQueue).Spec.ClusterQueue)} }},
		{&kueue.ClusterQueue{}, FlavorIndex, ListedFlavors},
	} {
		if err := indexer.IndexField(context.Background(), index.of, index.name, index.keys); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.of, index.name, err)
		}
	}
	return nil
}

// ReservedQueue returns the ClusterQueue whose quota a Workload holds, if any.
func ReservedQueue(o client.Object) []string {
	w := o.(*kueue.Workload)
	if !HoldsQuota(w) {
		return nil
	}
	return []string{string(w.Status.Admission.ClusterQueue)}
}

// ListedFlavors returns the flavors that a ClusterQueue lists.
func ListedFlavors(o client.Object) []string {
	var out []string
	for _, group := range o.(*kueue.ClusterQueue).Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			out = append(out, string(flavor.Name))
		}
	}
	return out
}

// ConcernsWorkloads passes changes of a queue that may concern its Workloads: of its stop policy, of its checks, of its
// time limit, and its deletion. It drops the initial list: Workloads are reconciled after the queues are synced, each
// on its own account.
var ConcernsWorkloads = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		if !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp()) {
			return true
		}
		if workload.MaxDuration(e.ObjectOld) != workload.MaxDuration(e.ObjectNew) {
			return true
		}
		switch old := e.ObjectOld.(type) {
		case *kueue.LocalQueue:
			return ptr.Deref(old.Spec.StopPolicy,
				kueue.None) != ptr.Deref(e.ObjectNew.(*kueue.LocalQueue).Spec.StopPolicy, kueue.None)
		case *kueue.ClusterQueue:
			changed := e.ObjectNew.(*kueue.ClusterQueue)
			after := &changed.Spec
			return workload.Closed(old) != workload.Closed(changed) ||
				ptr.Deref(old.Spec.StopPolicy, kueue.None) != ptr.Deref(after.StopPolicy, kueue.None) ||
				!equality.Semantic.DeepEqual(old.Spec.AdmissionChecks, after.AdmissionChecks) ||
				!equality.Semantic.DeepEqual(old.Spec.AdmissionChecksStrategy, after.AdmissionChecksStrategy)
		}
		return true
	},
}

// HoldsQuota reports whether the Workload, by its status, holds quota.
func HoldsQuota(w *kueue.Workload) bool { return workload.HoldsQuota(w) && !workload.IsFinished(w) }
