package jobs

import (
	"context"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// A job that another job creates is not queued: its owner is queued for it, stops it and starts it. An owner reference
// does not prove that, since users may set any on their jobs. So a job is its owner's only if the owner would create one
// of its name, and if it was not marked, at its creation by a user, as one that is nobody's. A job that has a Workload of
// its own follows that, whatever its owners are.

// leftAlone returns the plan for a job of an external kind that is in no queue: its users start it. If it was marked as
// queued, for instance because the LocalQueue default has been deleted since, the mark is changed.
func leftAlone(job client.Object) Plan {
	if job.GetAnnotations()[muster.QueuedAnnotation] != muster.QueuedItself {
		return Plan{}
	}
	return Plan{Batch: write.Batch{Writes: []write.Write{write.Change(job, job).Marked(muster.NotQueued).DespiteStatus()}}}
}

// QueuedByOwner reports whether a job of one of the APIs has created the object, or would, and is queued for it.
func QueuedByOwner(ctx context.Context, c client.Reader, object client.Object, apis ...Served) (bool, error) {
	for _, api := range apis {
		if queues, err := api.queuesFor(ctx, c, object); queues || err != nil {
			return queues, err
		}
	}
	return false, nil
}

// sameType returns a function that reports whether another object is of the object's type.
func sameType(object client.Object) func(client.Object) bool {
	return func(other client.Object) bool { return reflect.TypeOf(other) == reflect.TypeOf(object) }
}

// refersTo reports whether the reference, which may be nil, is to an object of the kind, in any version.
func refersTo(owner *metav1.OwnerReference, kind schema.GroupKind) bool {
	if owner == nil || owner.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == kind.Group
}

// hasWorkload reports whether the job, of any kind, is queued itself: it controls a Workload that is not finished.
func (r *reader[T]) hasWorkload(ctx context.Context, job client.Object) (bool, error) {
	gvk, err := apiutil.GVKForObject(job, r.client.Scheme())
	if err != nil {
		return false, err
	}
	list, err := r.workloadsOf(ctx, gvk.GroupKind(), client.ObjectKeyFromObject(job))
	return slices.ContainsFunc(list, func(w kueue.Workload) bool {
		return metav1.IsControlledBy(&w, job) && !workload.IsFinished(&w)
	}), err
}

// planFor returns the plan of the API, without anything for a Workload.
//
// A child that is queued itself is no child: it became one by an owner reference that was added later. If the plan
// changes such a child, it is made anew without it: its own queue, which stops and starts it, would undo the change, and
// the job would wait for ever for the end of its pods.
func (r *reconciler[T]) planFor(ctx context.Context, seen Seen[T]) (Plan, error) {
	plan := r.api.Plan(seen)
	strays, err := r.strays(ctx, seen.Job, plan)
	if err != nil {
		return Plan{}, err
	}
	if strays.Len() > 0 {
		seen.Children = slices.DeleteFunc(slices.Clone(seen.Children), func(child client.Object) bool { return strays.Has(child.GetUID()) })
		plan = r.api.Plan(seen)
	}
	if !r.read.nativeGangs {
		plan.Writes = append(plan.Writes, relaxPodGroups(seen.Children)...)
	}
	if seen.Facts.Agent.Awaited() && plan.Progress.Outcome == nil {
		plan.DueBy(seen.Now.Add(longestPoll)) // no event reports when agents can be served
	}
	return plan, r.adopt(ctx, seen, &plan)
}

// strays returns the UIDs of the jobs that the plan changes or deletes and that are queued themselves. Only these are
// looked up, since a job may have thousands of children.
func (r *reconciler[T]) strays(ctx context.Context, job T, plan Plan) (sets.Set[types.UID], error) {
	if r.api.CreatesJob == nil {
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
