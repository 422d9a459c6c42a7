package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// A job that another job creates is not queued: its owner is queued for it, stops it and starts it. An owner reference
// does not prove that, since users may set any on their jobs. So a job is its owner's only if the owner would create
// one of its name, and if it was not marked, at its creation by a user, as one that is nobody's. A job that has a
// Workload of its own follows that, whatever its owners are.

// QueuedByOwner reports whether a job of one of the APIs has created the object, or would, and is queued for it.
func QueuedByOwner(ctx context.Context, c client.Reader, object client.Object, apis ...Served) (bool, error) {
	for _, api := range apis {
		if queues, err := api.queuesFor(ctx, c, object); queues || err != nil {
			return queues, err
		}
	}
	return false, nil
}

// queuesFor reports whether a job of the API controls the object, and is queued for it. A job that does not exist any
// more counts as if it were: the garbage collector is about to delete the object, or to remove the reference. It cannot
// do so if it does not know the version in the reference.
func (s served[T]) queuesFor(ctx context.Context, c client.Reader, object client.Object) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(object)
	if s.Queueing.CreatesJob == nil || jobs.IsNobodys(object) || !jobs.RefersTo(owner, s.kind()) ||
		!slices.ContainsFunc(s.Watch.Owns, sameType(object)) {
		return false, nil
	}
	job := s.New()
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}
	// It is read for each event of a job that has an owner, and CreatesJob looks only at fields that users write, so the
	// read need not wait until the cache shows Muster's own writes.
	err := c.Get(ctx, key, job, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsNotFound(err) || err == nil && job.GetUID() != owner.UID:
		return owner.APIVersion == s.Kind.GroupVersion().String(), nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s, the owner of %s: %w", s.Kind.Kind, key, object.GetName(), err)
	}
	return s.Queueing.CreatesJob(job, object), nil
}

// sameType returns a function that reports whether another object is of the object's type.
func sameType(object client.Object) func(client.Object) bool {
	return func(other client.Object) bool { return reflect.TypeOf(other) == reflect.TypeOf(object) }
}

// leftAlone returns the plan for a job of an external kind that is in no queue: its users start it. If it was marked as
// queued, for instance because the LocalQueue default has been deleted since, the mark is changed.
func leftAlone(job client.Object) jobs.Plan {
	if job.GetAnnotations()[muster.QueuedAnnotation] != muster.QueuedItself {
		return jobs.Plan{}
	}
	return jobs.Plan{Batch: write.Batch{
		Writes: []write.Write{write.Change(job, job).Marked(muster.NotQueued).DespiteStatus()}}}
}

// strays returns the UIDs of the jobs that the plan changes or deletes and that are queued themselves. Only these are
// looked up, since a job may have thousands of children.
func (r *reconciler[T]) strays(ctx context.Context, job T, plan jobs.Plan) (sets.Set[types.UID], error) {
	if r.api.Queueing.CreatesJob == nil {
		return nil, nil
	}
	out := sets.New[types.UID]()
	for _, w := range plan.Writes {
		object := w.Object()
		if w.Verb() == write.VerbCreate || !metav1.IsControlledBy(object, job) {
			continue
		}
		switch itself, err := r.read.hasWorkload(ctx, object); {
		case err != nil:
			return nil, err
		case itself:
			out.Insert(object.GetUID())
		}
	}
	return out, nil
}
