package controller

import (
	"context"
	"slices"

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

// leftAlone returns the plan for a job of an external kind that is in no queue: its users start it. If it was marked as
// queued, for instance because the LocalQueue default has been deleted since, the mark is changed.
func leftAlone(job client.Object) jobs.Plan {
	if job.GetAnnotations()[muster.QueuedAnnotation] != muster.QueuedItself {
		return jobs.Plan{}
	}
	return jobs.Plan{Batch: write.Batch{
		Writes: []write.Write{write.Change(job, job).Marked(muster.NotQueued).DespiteStatus()}}}
}

// planFor returns the plan of the API, without anything for a Workload.
//
// A child that is queued itself is no child: it became one by an owner reference that was added later. If the plan
// changes a child that is queued itself, the plan is made anew without that child: its own queue, which stops and
// starts it, would undo the change, and the job would wait for ever for the end of its pods.
func (r *reconciler[T]) planFor(ctx context.Context, seen jobs.Seen[T]) (jobs.Plan, error) {
	plan := r.api.Plan(seen)
	strays, err := r.strays(ctx, seen.Job, plan)
	if err != nil {
		return jobs.Plan{}, err
	}
	if strays.Len() > 0 {
		seen.Children = slices.DeleteFunc(slices.Clone(seen.Children),
			func(child client.Object) bool { return strays.Has(child.GetUID()) })
		plan = r.api.Plan(seen)
	}
	if !r.read.nativeGangs {
		plan.Writes = append(plan.Writes, jobs.RelaxPodGroups(seen.Children)...)
	}
	if seen.Facts.Agent.Awaited() && plan.Progress.Outcome == nil {
		plan.DueBy(seen.Now.Add(longestPoll)) // no event reports when agents can be served
	}
	return plan, r.adopt(ctx, seen, &plan)
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
