package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// disownedPoll is the time between two reconciles of a job whose Workload is disowned: none of its events leads to the
// job any more, its deletion included.
const disownedPoll = 2 * time.Second

// workloads returns the Workload that the job follows, nil if there is none, and further ones that the job controls or
// that are disowned.
func (r *reader[T]) workloads(ctx context.Context,
	job workloads.Job) (found *kueue.Workload, others []*kueue.Workload, err error) {
	list, err := r.workloadsOf(ctx, r.api.kind(), client.ObjectKeyFromObject(job))
	if err != nil {
		return nil, nil, err
	}
	for w := range pointers.To(list) {
		if job.Controls(w) {
			others = append(others, w)
		}
	}
	slices.SortFunc(others, func(a, b *kueue.Workload) int { return cmp.Compare(a.Name, b.Name) })
	wanted := job.WantedNames()[0]
	if found = job.Follow(others); found != nil {
		found, wanted = found.DeepCopy(), found.Name
	} else if found, err = r.wantedWorkload(ctx, job); err != nil {
		return nil, nil, err
	} else if found != nil && job.IsDisowned(found) {
		return nil, append(others, found), nil
	} else if found != nil {
		wanted = found.Name
	}
	return found, slices.DeleteFunc(others, func(w *kueue.Workload) bool { return w.Name == wanted }), nil
}

// wantedWorkload returns the Workload that the job names, which may not be the job's own yet, or else the one of its
// generated name, nil if there is none.
func (r *reader[T]) wantedWorkload(ctx context.Context, job workloads.Job) (*kueue.Workload, error) {
	for _, name := range job.WantedNames() {
		var w kueue.Workload
		key := client.ObjectKey{Namespace: job.GetNamespace(), Name: name}
		switch err := r.client.Get(ctx, key, &w); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading Workload %s: %w", key, err)
		case !job.MayFollow(&w):
			return nil, fmt.Errorf("reading Workload %s: %w", key, &write.NameTakenError{Kind: "Workload", Name: key.Name})
		default:
			return &w, nil
		}
	}
	return nil, nil
}

// hasWorkload reports whether the job, of any kind, is queued itself: it controls a Workload that is not finished.
func (r *reader[T]) hasWorkload(ctx context.Context, job client.Object) (bool, error) {
	gvk, err := r.client.GroupVersionKindFor(job)
	if err != nil {
		return false, err
	}
	list, err := r.workloadsOf(ctx, gvk.GroupKind(), client.ObjectKeyFromObject(job))
	return slices.ContainsFunc(list, func(w kueue.Workload) bool {
		return metav1.IsControlledBy(&w, job) && !workload.IsFinished(&w)
	}), err
}
