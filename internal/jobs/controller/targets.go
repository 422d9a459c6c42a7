package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs/write"
)

// targetMissing is the reason of the event on an object that is deleted because the job it is meant for does not exist.
const targetMissing = "TargetNotFound"

// deleteStrayTargets deletes the objects that are meant for a job of this name which does not exist. They never have an
// effect, since a job that is created later is another one, and nobody else would delete them. known is the UID of the
// job as the cache has it, "" if there is none; the API server is asked too, as the job may be new.
func (r *reconciler[T]) deleteStrayTargets(ctx context.Context, name types.NamespacedName, known types.UID) error {
	strays, err := r.read.strayTargets(ctx, name, known)
	if err != nil || len(strays) == 0 {
		return err
	}
	job := r.api.New()
	if err := client.IgnoreNotFound(r.read.live.Get(ctx, name, job)); err != nil {
		return fmt.Errorf("reading %s %s: %w", r.api.Kind.Kind, name, err)
	}
	for _, object := range strays {
		if r.read.isFor(object, job.GetUID()) {
			continue
		}
		gone := write.Warning(targetMissing, fmt.Sprintf(
			"%s %s, for which this is meant, does not exist: it is deleted without an effect", r.api.Kind.Kind, name.Name))
		deletion := write.Delete(object).WithEvent(gone)
		err := r.executor.Run(ctx, object, write.Batch{Writes: []write.Write{deletion}})
		if err != nil && !write.IsOvertaken(err) {
			return err
		}
	}
	return nil
}

// strayTargets returns the objects that are meant for jobs of this name other than the one with the UID. They are
// shared with the cache, as users may have any number of them, and must not be modified.
func (r *reader[T]) strayTargets(ctx context.Context, name types.NamespacedName,
	uid types.UID) (out []client.Object, err error) {
	if r.api.Watch.Targets == nil {
		return nil, nil
	}
	for _, kind := range r.owns {
		err := each(ctx, r.client, kind, func(object client.Object) {
			if object.GetDeletionTimestamp().IsZero() && !r.isFor(object, uid) {
				out = append(out, object)
			}
		}, client.InNamespace(name.Namespace), client.MatchingFields{controllerIndex: anyTargetKey(name.Name)})
		if err != nil {
			return nil, fmt.Errorf("listing what is meant for %s: %w", name, err)
		}
	}
	return out, nil
}

// isFor reports whether the object is meant for the job with the UID, "" if there is none, of the name that it gives.
func (r *reader[T]) isFor(object client.Object, job types.UID) bool {
	_, uid := r.api.Watch.Targets(object)
	return job != "" && (uid == "" || uid == job)
}
