package observe

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
)

// SnapshotNamed reads the jobs of that name, and what explains them unless they wait: a fraction of SnapshotAll,
// however many other jobs there are. Of the kinds that it reads all objects of, there are few, and of nodes only the
// metadata.
func (c *Cluster) SnapshotNamed(ctx context.Context, namespace, name string) (*view.Snapshot, error) {
	var lists jobLists
	snapshot := &view.Snapshot{Configuration: c.configuration, Assumed: c.assumed}
	jobs := lists.jobKinds()
	for i := range jobs {
		jobs[i].only = &client.ListOptions{Namespace: namespace,
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	if err := c.readAll(ctx, snapshot, namespace, jobs); err != nil {
		return nil, err
	}
	lists.put(snapshot)
	if err := c.readWorkloadsOf(ctx, snapshot, namespace, &lists); err != nil {
		return nil, err
	}
	if len(lists.jobSets.Items) > 0 {
		var parts batchv1.JobList
		if err := c.readAll(ctx, snapshot,
			namespace, []kindRead{{name: "jobs", list: &parts, watched: &batchv1.Job{}, namespaced: true,
				only: &client.ListOptions{Namespace: namespace,
					LabelSelector: labels.SelectorFromSet(labels.Set{jobset.JobSetNameKey: name})}}}); err != nil {
			return nil, err
		}
		lists.jobs.Items = append(lists.jobs.Items, parts.Items...)
	}
	lists.put(snapshot)
	return snapshot, c.readQueues(ctx, snapshot, namespace)
}

// readWorkloadsOf reads the Workloads of the jobs in the snapshot and of their controllers, and the LocalQueues of the
// namespace.
func (c *Cluster) readWorkloadsOf(ctx context.Context, snapshot *view.Snapshot, namespace string,
	lists *jobLists) error {
	owners := sets.New[string]()
	for uid := range snapshot.JobUIDs() {
		owners.Insert(string(uid))
	}
	for i := range snapshot.Jobs {
		if owner := metav1.GetControllerOf(&snapshot.Jobs[i]); owner != nil {
			owners.Insert(string(owner.UID))
		}
	}
	if owners.Len() == 0 {
		return nil
	}
	ofThem, err := labels.NewRequirement(kueue.JobUIDLabel, selection.In, sets.List(owners))
	if err != nil {
		return err
	}
	queued := lists.queuedKinds()
	queued[0].only = &client.ListOptions{Namespace: namespace, LabelSelector: labels.NewSelector().Add(*ofThem)}
	queued[1].only = client.InNamespace(namespace)
	return c.readAll(ctx, snapshot, namespace, queued)
}

// readQueues reads the ClusterQueues that the snapshot's Workloads were admitted by, the flavors and, if a flavor is
// placed on nodes, these.
func (c *Cluster) readQueues(ctx context.Context, snapshot *view.Snapshot, namespace string) error {
	var flavors kueue.ResourceFlavorList
	if len(snapshot.Workloads) == 0 {
		return nil
	}
	if err := c.readAll(ctx, snapshot, namespace,
		[]kindRead{{name: "resourceflavors", list: &flavors, decides: true}}); err != nil {
		return err
	}
	snapshot.ResourceFlavors = flavors.Items
	for i := range snapshot.Workloads {
		var queues kueue.ClusterQueueList
		admission := snapshot.Workloads[i].Status.Admission
		if admission == nil {
			continue
		}
		kind := clusterQueueKind(&queues)
		kind.only = client.MatchingFields{metav1.ObjectNameField: string(admission.ClusterQueue)}
		if err := c.readAll(ctx, snapshot, namespace, []kindRead{kind}); err != nil {
			return err
		}
		snapshot.ClusterQueues = append(snapshot.ClusterQueues, queues.Items...)
	}
	if !snapshot.Places() {
		return nil
	}
	var nodes corev1.NodeList
	err := c.readMetadata(ctx, kindRead{list: &nodes, watched: &corev1.Node{}}, "")
	snapshot.Nodes = nodes.Items
	return err
}
