package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// A job follows one Workload. Which one that is depends on a label, which users can set, change and remove at any time.
// While a Workload holds quota for the job, the job follows that one, so that its pods run, stop and end with the quota
// that they have; the label counts again once it is given back. All other Workloads of the job are given back.

// workloadReplaced is the reason of the event on a job that follows another Workload than before.
const workloadReplaced = "WorkloadReplaced"

// workloadDisowned is the reason of the event on a job whose Workload has lost its owner reference to the job.
const workloadDisowned = "WorkloadDisowned"

// disownedPoll is the time between two reconciles of a job whose Workload is disowned: none of its events leads to the
// job any more, its deletion included.
const disownedPoll = 2 * time.Second

// workloads returns the Workload that the job follows, nil if there is none, and the others that it controls or that are
// disowned.
func (r *reconciler[T]) workloads(ctx context.Context, job T) (found *kueue.Workload, others []*kueue.Workload, err error) {
	list, err := r.workloadsOf(ctx, r.api.kind(), client.ObjectKeyFromObject(job))
	if err != nil {
		return nil, nil, err
	}
	wanted := r.wantedName(job)
	for i := range list {
		if w := &list[i]; isControlledBy(w, job, r.api.Kind) {
			others = append(others, w)
		}
	}
	slices.SortFunc(others, func(a, b *kueue.Workload) int { return cmp.Compare(a.Name, b.Name) })
	for _, w := range others {
		if holds := workload.HoldsQuota(w) && !workload.IsFinished(w); holds && (found == nil || r.isWanted(job, w.Name)) {
			found = w
		}
	}
	if found != nil {
		found, wanted = found.DeepCopy(), found.Name
	} else if found, err = r.wantedWorkload(ctx, job); err != nil {
		return nil, nil, err
	} else if found != nil && r.isDisowned(job, found) {
		return nil, append(others, found), nil
	} else if found != nil {
		wanted = found.Name
	}
	return found, slices.DeleteFunc(others, func(w *kueue.Workload) bool { return w.Name == wanted }), nil
}

// wantedName returns the name of the Workload that the job is to follow once it holds no quota: the one that it names,
// or else a generated one.
func (r *reconciler[T]) wantedName(job T) string {
	return cmp.Or(r.prebuiltOf(job), workloadName(r.api.Kind, job.GetName(), job.GetUID()))
}

// isWanted reports whether the name is that of the Workload that the job is to follow once it holds no quota.
func (r *reconciler[T]) isWanted(job T, name string) bool {
	if prebuilt := r.prebuiltOf(job); prebuilt != "" {
		return name == prebuilt
	}
	return r.isGenerated(job, name)
}

// isGenerated reports whether the name is one that is generated for the job's Workload.
func (r *reconciler[T]) isGenerated(job T, name string) bool {
	return isWorkloadName(name, r.api.Kind, job.GetName(), job.GetUID())
}

// wantedWorkload returns the Workload that the job names, which may not be the job's own yet, or else the one of its
// generated name, nil if there is none. One that an earlier version made may have a longer name.
func (r *reconciler[T]) wantedWorkload(ctx context.Context, job T) (*kueue.Workload, error) {
	names := []string{r.prebuiltOf(job)}
	if names[0] == "" {
		names = slices.Compact([]string{r.wantedName(job), longWorkloadName(r.api.Kind, job.GetName(), job.GetUID())})
	}
	for _, name := range names {
		if found, err := r.workloadNamed(ctx, job, name); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// workloadNamed returns the Workload of this name if the job may follow it, nil if there is none.
func (r *reconciler[T]) workloadNamed(ctx context.Context, job T, name string) (*kueue.Workload, error) {
	var w kueue.Workload
	key := client.ObjectKey{Namespace: job.GetNamespace(), Name: name}
	switch err := r.client.Get(ctx, key, &w); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Workload %s: %w", key, err)
	case r.prebuiltOf(job) == "" && !isControlledBy(&w, job, r.api.Kind) && !r.isDisowned(job, &w):
		return nil, fmt.Errorf("reading Workload %s: %w", key, &NameTakenError{Kind: "Workload", Name: key.Name})
	}
	return &w, nil
}

// isDisowned reports whether the Workload, of the name that is generated for the job, has no controller any more: someone
// has removed the owner reference. The job does not take it back: by now it may be finished for having no job, or ask for
// less than the job, which only the operator may change in the Workload of a job.
func (r *reconciler[T]) isDisowned(job T, w *kueue.Workload) bool {
	return metav1.GetControllerOfNoCopy(w) == nil && r.isGenerated(job, w.Name) && r.prebuiltOf(job) != w.Name
}

// prebuiltOf returns the Workload that the job names for itself, "" if there is none. In a job that delegates, the
// label is meant for the jobs that it creates.
func (r *reconciler[T]) prebuiltOf(job T) string {
	if r.api.Delegates {
		return ""
	}
	return prebuiltName(job)
}

// isControlledBy reports whether the Workload is controlled by the job. The kind of the owner is compared as well,
// because the admission policies decide by that kind who may set what on a Workload.
func isControlledBy(w *kueue.Workload, job client.Object, kind schema.GroupVersionKind) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	if owner == nil || owner.UID != job.GetUID() || owner.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == kind.Group
}

// followsPrebuilt reports whether the Workload that the job follows, or is to follow if that is nil, was made by someone
// else, and so says itself what it asks for.
func (r *reconciler[T]) followsPrebuilt(job T, followed *kueue.Workload) bool {
	if followed == nil {
		return r.prebuiltOf(job) != ""
	}
	return !r.isGenerated(job, followed.Name)
}

// giveBack returns writes that delete the Workloads that the job does not follow although it controls them, and those
// that are disowned. Quota that they hold is returned once the job has no pods, since it cannot be known which of the
// pods it was for.
func (r *reconciler[T]) giveBack(job T, others []*kueue.Workload, followed *kueue.Workload, progress Progress) (writes []Write) {
	follows := r.wantedName(job)
	if followed != nil {
		follows = followed.Name
	}
	for _, w := range others {
		disowned := r.isDisowned(job, w)
		if workload.IsFinished(w) && !disowned { // it is kept as a record
			if free := withoutFinalizer(w, progress.Active); free != nil {
				writes = append(writes, Change(w, free))
			}
			continue
		}
		for _, write := range pausedWrites(w, Progress{Active: progress.Active && workload.HoldsQuota(w)}) {
			switch {
			case write.Verb() == VerbDelete && disowned:
				write = write.WithEvent(Warning(workloadDisowned, fmt.Sprintf(
					"Workload %s is deleted: its owner reference to the job was removed, so its quota is not the job's any more. The job stops and is queued again", w.Name)))
			case write.Verb() == VerbDelete:
				write = write.WithEvent(Normal(workloadReplaced, fmt.Sprintf("Workload %s is deleted: the job follows Workload %s now", w.Name, follows)))
			}
			writes = append(writes, write)
		}
	}
	return writes
}

// awaited reports whether one of the Workloads, which the job does not follow, may still get or hold quota, or has the
// name that the job's next one will have.
func (r *reconciler[T]) awaited(job T, others []*kueue.Workload) bool {
	return slices.ContainsFunc(others, func(w *kueue.Workload) bool { return !workload.IsFinished(w) || r.isDisowned(job, w) })
}
