package jobset

import (
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// gangName is the gang of a replicated job: its Jobs start together, while those of another
// may have to wait for them.
func gangName(js *jobset.JobSet, replicatedJob string) string { return js.Name + "-" + replicatedJob }

// gangOf is the PodGroup of the pods that the replicated job makes now, and the priority class
// that they name.
func (a *attempt) gangOf(rj *jobset.ReplicatedJob) (group, priorityClass string) {
	return a.seen.Facts.Priorities.GangFor(gangName(a.js, rj.Name), rj.Template.Spec.Template.Spec.PriorityClassName, a.podGroups)
}

// joinsGang reports whether the pods of the replicated job are a gang to kube-scheduler:
// they were admitted together, and the cluster has gangs. Those whose user says of which
// group they are, and those that find their domain by the pods that are there already,
// which kube-scheduler promises nothing for in gangs, are left to themselves. So are those
// that wait for their places one by one, since it holds back a whole gang for one pod with
// a gate, the rest of a replicated job of which some run already without a group, or in one of
// another priority, and those of which one is enough: a PodGroup would be two writes that hold
// nothing together.
func (a *attempt) joinsGang(rj *jobset.ReplicatedJob) bool {
	if joins, known := a.gangs[rj.Name]; known {
		return joins
	}
	joins := a.mayJoinGang(rj)
	a.gangs[rj.Name] = joins
	return joins
}

func (a *attempt) mayJoinGang(rj *jobset.ReplicatedJob) bool {
	granted, ok := a.seen.Admission.PodSets[rj.Name]
	if !ok || !a.seen.Facts.NativeGangs || rj.Template.Spec.Template.Spec.SchedulingGroup != nil ||
		exclusionOf(a.js, rj).ofNodes() && len(granted.Places) == 0 || boundsOf(a.js, rj).Elastic && len(granted.Places) > 0 || a.oneIsEnough(rj) {
		return false
	}
	for index := range rj.Replicas {
		if from, to := a.rowOf(rj, granted).ranks(index); len(granted.For(from, to).Gates) > 0 {
			return false
		}
	}
	group, _ := a.gangOf(rj)
	for index := range rj.Replicas {
		job := a.children.presentJob(jobName(a.js, rj.Name, index))
		if job != nil && job.DeletionTimestamp.IsZero() && !jobs.IsInPodGroup(&job.Spec.Template.Spec, group) {
			return false
		}
	}
	return true
}

// oneIsEnough reports whether no pod of the replicated job has to wait for another.
func (a *attempt) oneIsEnough(rj *jobset.ReplicatedJob) bool {
	if b := boundsOf(a.js, rj); b.Elastic {
		return b.Least <= 1
	}
	return podCount(rj) <= 1
}

// leavesGang reports whether a Job was made for a gang that it has no part in any more:
// its template cannot be changed to that.
func (a *attempt) leavesGang(job, fresh *batchv1.Job) bool {
	return fresh.Spec.Template.Spec.SchedulingGroup == nil && jobs.IsOfGang(&job.Spec.Template.Spec, gangName(a.js, job.Labels[jobset.ReplicatedJobNameKey]))
}

// leaveKeptOut deletes Jobs of which no pod has ever been ready and whose gang has another priority than pods of theirs are given
// now: such as where a class became the default after their PodGroup was made. Their templates cannot be changed; they are made
// anew, in a gang of that priority.
func (a *attempt) leaveKeptOut() {
	for _, job := range a.children.active {
		spec := &job.Spec.Template.Spec
		if suspended(job) || spec.SchedulingGroup == nil || job.Status.Succeeded > 0 || ptr.Deref(job.Status.Ready, 0) > 0 ||
			!jobs.IsOfGang(spec, gangName(a.js, job.Labels[jobset.ReplicatedJobNameKey])) {
			continue
		}
		if !a.seen.Facts.Priorities.KeepsOut(*spec.SchedulingGroup.PodGroupName, spec.PriorityClassName, a.podGroups) {
			continue
		}
		// A class that has just been made may not have been seen yet, and pods of the old default may be about to be ready.
		if at := job.CreationTimestamp.Add(patience); a.seen.Now.Before(at) {
			a.plan.DueBy(at)
			continue
		}
		a.deleteJobs([]*batchv1.Job{job})
	}
}

// keepGangs has every gang be there before its pods, with as many as were admitted and
// still have to run: one that is short of a pod that ended well would wait for it for
// ever. While all its pods are ready nobody asks, and nothing is written.
func (a *attempt) keepGangs() {
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		pods, waiting := a.podsToRun(rj)
		if pods == 0 {
			continue
		}
		if !a.joinsGang(rj) {
			if waiting {
				a.loosenGangs(rj)
			}
			continue
		}
		if b := boundsOf(a.js, rj); b.Elastic {
			pods = min(pods, b.Least)
		}
		group, class := a.gangOf(rj)
		gang := jobs.Gang{Name: group, Pods: pods, Waits: waiting, PriorityClass: class}
		if write, differs := gang.Keep(a.js, kind, a.podGroups); differs {
			a.plan.First = append(a.plan.First, write)
			a.lacksGang = a.lacksGang || write.Verb() == "create"
		}
	}
}

// loosenGangs has the PodGroups in which Jobs of the replicated job run that makes no gang any more, since it became smaller or
// other nodes were given to some of its Jobs, ask for no more pods than these Jobs have: a pod that is made anew would wait for
// ever for those that were gone. A PodGroup whose Jobs are made anew, for it keeps them out, stays whole until they are gone.
func (a *attempt) loosenGangs(rj *jobset.ReplicatedJob) {
	for _, there := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](a.podGroups) {
		pods, keptOut := int32(0), false
		for _, job := range a.children.active {
			spec := &job.Spec.Template.Spec
			if suspended(job) || job.Labels[jobset.ReplicatedJobNameKey] != rj.Name || !jobs.IsInPodGroup(spec, there.Name) {
				continue
			}
			pods += podsLeft(job)
			keptOut = keptOut || a.seen.Facts.Priorities.KeepsOut(there.Name, spec.PriorityClassName, a.podGroups)
		}
		if least := there.Spec.SchedulingPolicy.Gang; pods == 0 || keptOut || least == nil || pods >= least.MinCount {
			continue
		}
		if write, differs := (jobs.Gang{Name: there.Name, Pods: pods, Waits: true}).Keep(a.js, kind, a.podGroups); differs {
			a.plan.First = append(a.plan.First, write)
		}
	}
}

// podsToRun counts the pods of the replicated job that run or have to run, and whether
// some of those are not ready yet.
func (a *attempt) podsToRun(rj *jobset.ReplicatedJob) (pods int32, waiting bool) {
	for index := range rj.Replicas {
		job := a.children.presentJob(jobName(a.js, rj.Name, index))
		switch {
		case job == nil || suspended(job):
			pods += a.sizeOf(rj)
			waiting = true
		case ended(job):
		default:
			pods += podsLeft(job)
			waiting = waiting || job.Status.Active > ptr.Deref(job.Status.Ready, 0)
		}
	}
	return pods, waiting
}

// podsLeft is how many pods an unfinished Job runs at a time from now on: none is made for an
// index that has succeeded, or has failed for good.
func podsLeft(job *batchv1.Job) int32 {
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	completions := ptr.Deref(job.Spec.Completions, parallelism)
	over := job.Status.Succeeded + jobs.CountIndexes(ptr.Deref(job.Status.FailedIndexes, ""), completions)
	return max(0, min(parallelism, completions-over))
}
