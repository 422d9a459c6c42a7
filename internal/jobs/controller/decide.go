package controller

import (
	"context"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"slices"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// decide returns all that has to be done for the job: what its API plans with what the job was granted, and what keeps
// its Workloads in sync with that.
func (r *reconciler[T]) decide(ctx context.Context, job T) (plan jobs.Plan, err error) {
	o, err := r.observe(ctx, job)
	if err != nil {
		return jobs.Plan{}, err
	}
	held, err := r.read.heldByChild(ctx, &o)
	switch {
	case err != nil:
		return jobs.Plan{}, err
	case o.state.Described.Foreign:
	case held:
		plan = r.api.Plan(o.seen)
		plan.DueBy(o.seen.Now.Add(longestPoll)) // no event reports when the child's quota is released
	case o.queued:
		if err := r.grant(ctx, &o); err != nil {
			return jobs.Plan{}, err
		}
		if plan, err = r.planFor(ctx, o.seen); err == nil {
			err = r.addQueueing(ctx, &plan, o)
		}
	case r.api.Queueing.External && o.state.OwnerQueued:
		plan = leftAlone(job)
	case r.api.Queueing.External:
		plan, err = r.planOfNobody(ctx, job)
	default:
		plan, err = r.planFor(ctx, o.seen)
	}
	if err != nil {
		return jobs.Plan{}, err
	}
	of := r.inQueue(job)
	plan.Add(of.GiveBack(o.others, o.state.Followed, plan.Progress)...)
	if slices.ContainsFunc(o.others, of.IsDisowned) {
		plan.DueBy(r.clock.Now().Add(disownedPoll)) // also if the job waits, and so has no children with events
	}
	return plan, nil
}

// observe reads what exists of the job, lets its API describe it, and chooses its queue. Of a job that another
// controller runs it reads only the Workloads.
func (r *reconciler[T]) observe(ctx context.Context, job T) (o observed[T], err error) {
	of := r.inQueue(job)
	o.seen.Admission = jobs.Admission{Grant: jobs.Unqueued}
	if o.state.Followed, o.others, err = r.read.workloads(ctx, of); err != nil {
		return o, err
	}
	facts, err := r.read.facts(ctx, job)
	if err != nil {
		return o, err
	}
	if w := o.state.Followed; w != nil && of.Controls(w) {
		o.state.Own, facts.Queued = w, w.Spec.PodSets
	}
	if o.state.Described = r.described(job, facts); o.state.Described.Foreign {
		return o, nil
	}
	facts.Priorities = workloads.RememberPriority(facts.Priorities, o.state.Own)
	o.seen.Job, o.seen.Facts, o.state.Facts = job, facts, facts
	if err := r.observeChildren(ctx, &o.seen); err != nil {
		return o, err
	}
	o.state.Children = len(o.seen.Children)
	if o.state.OwnerQueued, err = QueuedByOwner(ctx, r.read.client, job, r.apis...); err != nil {
		return o, err
	}
	o.queue, o.queued = of.Queue(o.state)
	return o, nil
}

// described returns what the job asks for, without what its API cannot cope with. If a job that cannot be resized had
// an elastic pod set, the engine would wait for ever for the pods that it should give up.
func (r *reconciler[T]) described(job T, facts jobs.Facts) jobs.Description {
	described := r.api.Describe(job, facts)
	for podSet := range pointers.To(described.PodSets) {
		if !r.api.Abilities.Resizes {
			jobs.DropAnnotation(podSet, muster.MinReplicasAnnotation)
		}
		if !r.api.Abilities.AnyPods {
			jobs.DropAnnotation(podSet, muster.MinPodsAnnotation)
		}
	}
	return described
}

// observeChildren reads what exists of the job, except for its Workload.
func (r *reconciler[T]) observeChildren(ctx context.Context, seen *jobs.Seen[T]) (err error) {
	if seen.Children, err = r.read.children(ctx, seen.Job); err != nil {
		return err
	}
	if seen.Related, err = r.read.related(ctx, seen.Job); err != nil {
		return err
	}
	seen.Pods, err = r.read.podsOf(ctx, seen.Job)
	seen.RefusedObjects = r.refused.Get(seen.Job)
	seen.MustGoOn = r.mustGoOn.Get(seen.Job)
	seen.Now = r.clock.Now()
	return err
}

// grant adds to what was observed of a queued job its grant, and what keeps its pods from running.
func (r *reconciler[T]) grant(ctx context.Context, o *observed[T]) error {
	job, of := o.seen.Job, r.inQueue(o.seen.Job)
	nodes, err := r.read.nodes(ctx, o.state.Own)
	if err != nil {
		return err
	}
	o.seen.Admission = of.Admission(o.state, nodes)
	if o.seen.Refusals, err = r.read.refusals(ctx, job, o.seen.Children); err != nil {
		return err
	}
	o.seen.Mistake = of.Mistake(o.state)
	o.seen.MissingPods = r.missingPods.Get(job)
	o.silent, err = r.lookAtUnruled(ctx, &o.seen, o.state.Own)
	return err
}

// addQueueing adds to the plan of a queued job what its queue has to know, and what its users have to know of the
// queue.
func (r *reconciler[T]) addQueueing(ctx context.Context, plan *jobs.Plan, o observed[T]) error {
	seen, state := &o.seen, o.state
	o.silent.add(plan, !seen.Admission.UnreadySince.IsZero())
	r.missingPods.Set(seen.Job, seen.MissingPodsAfter(plan.Progress))
	giveUpRefused(seen, plan)
	if plan.Progress.Outcome == nil {
		plan.AddEvents(workloads.CannotStart(seen.Admission, state.Own)...)
		plan.AddEvents(workloads.CannotQueue(seen.Job, o.queue.Name, seen.Admission, state.Facts.Queues)...)
	}
	if seen.Admission.Conflict != "" && !plan.Progress.Active && plan.Progress.Outcome == nil {
		plan.Progress.FailedToStart = seen.Admission.Conflict
	}
	if err := r.holdDelegated(ctx, plan, state.Own, seen.Now); err != nil {
		return err
	}
	of := r.inQueue(seen.Job)
	// The job gets and adopts no Workload while another one may hold quota for it.
	if (state.Followed == nil || !workload.HoldsQuota(state.Followed)) && of.Awaits(o.others) {
		return nil
	}
	writes, events := of.Sync(state, o.queue.Name, plan.Progress, seen.Now)
	plan.Add(writes...)
	plan.AddEvents(events...)
	if o.queue.Make != nil && seen.Admission.Grant == jobs.Waiting && !state.Described.Paused &&
		plan.Progress.Outcome == nil {
		plan.Add(write.Create(o.queue.Make))
	}
	return nil
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
		plan.Add(jobs.RelaxPodGroups(seen.Children)...)
	}
	if seen.Facts.Agent.Awaited() && plan.Progress.Outcome == nil {
		plan.DueBy(seen.Now.Add(longestPoll)) // no event reports when agents can be served
	}
	return plan, r.adopt(ctx, seen, &plan)
}
