package observe

import (
	"context"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/cmd/muster/view"
)

// Names reads the metadata of the jobs of a namespace: it says how they are called, and which are parts of others. That
// is a fraction of a Snapshot, and comes from the API server's cache, so that it may be a little old. Only jobs of the
// kind (such as "jobset") have to be complete, if it is one. A kind that the user may not list is left out.
func (c *Cluster) Names(ctx context.Context, namespace, kind string) (*view.Snapshot, error) {
	var lists jobLists
	kinds := lists.kinds()
	for _, jobs := range lists.jobKinds() {
		if jobs.name == kind+"s" && kind != "vcjob" { // these may be parts of LatticeJobs
			kinds = []kindRead{jobs}
		}
	}
	var reads errgroup.Group
	for _, kind := range kinds {
		reads.Go(func() error { return c.readMetadata(ctx, kind, namespace) })
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	snapshot := &view.Snapshot{Configuration: c.configuration, Assumed: c.assumed}
	lists.put(snapshot)
	return snapshot, nil
}

// readMetadata fills the kind's list with objects that have nothing but their metadata.
func (c *Cluster) readMetadata(ctx context.Context, kind kindRead, namespace string) error {
	gvk, err := c.client.GroupVersionKindFor(kind.watched)
	if err != nil {
		return err
	}
	gvk.Kind += "List"
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(gvk)
	err = c.client.List(ctx, &list, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	if err != nil {
		if isNotServed(err) || apierrors.IsForbidden(err) {
			return nil
		}
		return err
	}
	objects := make([]runtime.Object, 0, len(list.Items))
	for i := range list.Items {
		read, object := &list.Items[i], kind.watched.DeepCopyObject().(client.Object)
		object.SetNamespace(read.Namespace)
		object.SetName(read.Name)
		object.SetUID(read.UID)
		object.SetLabels(read.Labels)
		object.SetCreationTimestamp(read.CreationTimestamp)
		object.SetOwnerReferences(read.OwnerReferences)
		objects = append(objects, object)
	}
	return meta.SetList(kind.list, objects)
}
