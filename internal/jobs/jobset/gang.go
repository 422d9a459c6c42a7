package jobset

import (
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// gangName returns the name of the gang of a replicated job. Each replicated job is a gang of its own, since its Jobs
// start together, while those of another one may have to wait for them.
func gangName(js *jobset.JobSet, replicatedJob string) string { return js.Name + "-" + replicatedJob }

// gangOf returns the PodGroup that new pods of the replicated job join, and the priority class that they name.
func (p *planner) gangOf(rj *jobset.ReplicatedJob) (group, priorityClass string) {
	return p.seen.Facts.Priorities.GangFor(gangName(p.js, rj.Name), rj.Template.Spec.Template.Spec.PriorityClassName, p.podGroups)
}

// joinsGang reports whether kube-scheduler is to bind the pods of the replicated job as a gang: they were admitted
// together, and the cluster supports gangs. The following pods join none:
//
//   - those whose user has set a scheduling group;
//   - those that find their exclusive domain by pod affinity, which kube-scheduler does not guarantee to work in gangs;
//   - those that are gated until they get a place, since the whole gang would be held back by one gated pod;
//   - those whose places nobody else can take;
//   - those of a replicated job of which some Jobs already run without a group, or in one of another priority;
//   - those of which one is enough, for which a PodGroup would only cost two writes.
func (p *planner) joinsGang(rj *jobset.ReplicatedJob) bool {
	if joins, known := p.gangs[rj.Name]; known {
		return joins
	}
	joins := p.mayJoinGang(rj)
	p.gangs[rj.Name] = joins
	return joins
}

func (p *planner) mayJoinGang(rj *jobset.ReplicatedJob) bool {
	granted, ok := p.seen.Admission.PodSets[rj.Name]
	if !ok || !p.seen.Facts.NativeGangs || rj.Template.Spec.Template.Spec.SchedulingGroup != nil ||
		exclusionOf(p.js, rj).isAutomatic() && len(granted.Places) == 0 || boundsOf(p.js, rj).Elastic && len(granted.Places) > 0 || p.oneIsEnough(rj) || granted.ClosedToOthers() {
		return false
	}
	for index := range rj.Replicas {
		if len(granted.For(p.layoutOf(rj, granted).part(index)).Gates) > 0 {
			return false
		}
	}
	group, _ := p.gangOf(rj)
	for index := range rj.Replicas {
		job := p.children.currentJob(jobName(p.js, rj.Name, index))
		if job != nil && job.DeletionTimestamp.IsZero() && !jobs.IsInPodGroup(&job.Spec.Template.Spec, group) {
			return false
		}
	}
	return true
}

// oneIsEnough reports whether no pod of the replicated job has to wait for another.
func (p *planner) oneIsEnough(rj *jobset.ReplicatedJob) bool {
	if b := boundsOf(p.js, rj); b.Elastic {
		return b.Least <= 1
	}
	return podCount(rj) <= 1
}

// leavesGang reports whether the Job's template belongs to a gang that new pods would not join. A template cannot be
// changed in this respect.
func (p *planner) leavesGang(job, fresh *batchv1.Job) bool {
	return fresh.Spec.Template.Spec.SchedulingGroup == nil && jobs.IsOfGang(&job.Spec.Template.Spec, gangName(p.js, job.Labels[jobset.ReplicatedJobNameKey]))
}

// recreateExcluded deletes Jobs that never had a ready pod and whose gang has another priority than new pods of theirs
// get, for instance because the default class changed after the PodGroup was created. Their templates cannot be
// changed, so they are recreated in a gang of the right priority.
func (p *planner) recreateExcluded() {
	for _, job := range p.children.active {
		spec := &job.Spec.Template.Spec
		if suspended(job) || spec.SchedulingGroup == nil || job.Status.Succeeded > 0 || ptr.Deref(job.Status.Ready, 0) > 0 ||
			!jobs.IsOfGang(spec, gangName(p.js, job.Labels[jobset.ReplicatedJobNameKey])) {
			continue
		}
		if !p.seen.Facts.Priorities.Excludes(*spec.SchedulingGroup.PodGroupName, spec.PriorityClassName, p.podGroups) {
			continue
		}
		// The cache may not show a new class yet, and pods of the old default may be about to become ready.
		if at := job.CreationTimestamp.Add(pollInterval); p.seen.Now.Before(at) {
			p.plan.DueBy(at)
			continue
		}
		p.deleteJobs([]*batchv1.Job{job})
	}
}

// ensureGangs creates each gang's PodGroup before its pods, with a MinCount of the admitted pods that still have to
// run: if it counted pods that have succeeded, the gang would wait for them forever. Once all its pods are ready,
// MinCount does not matter and is not updated.
func (p *planner) ensureGangs() {
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		pods, waiting := p.podsToRun(rj)
		if pods == 0 {
			continue
		}
		if !p.joinsGang(rj) {
			if waiting {
				p.relaxGangs(rj)
			}
			continue
		}
		if b := boundsOf(p.js, rj); b.Elastic {
			pods = min(pods, b.Least)
		}
		group, class := p.gangOf(rj)
		gang := jobs.Gang{Name: group, Pods: pods, Waiting: waiting, PriorityClass: class}
		if write, differs := gang.Ensure(p.js, kind, p.podGroups); differs {
			p.plan.First = append(p.plan.First, write)
			p.missingGang = p.missingGang || write.Verb() == "create"
		}
	}
}

// relaxGangs lowers the MinCount of PodGroups in which Jobs of the replicated job still run though it forms no gang
// any more, because it became smaller or some of its Jobs were given other nodes: replacement pods would wait forever
// for pods that do not come back. A PodGroup whose Jobs are recreated because of its priority keeps its MinCount until
// they are gone.
func (p *planner) relaxGangs(rj *jobset.ReplicatedJob) {
	for _, there := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](p.podGroups) {
		pods, keptOut := int32(0), false
		for _, job := range p.children.active {
			spec := &job.Spec.Template.Spec
			if suspended(job) || job.Labels[jobset.ReplicatedJobNameKey] != rj.Name || !jobs.IsInPodGroup(spec, there.Name) {
				continue
			}
			pods += jobs.PodsLeft(job)
			keptOut = keptOut || p.seen.Facts.Priorities.Excludes(there.Name, spec.PriorityClassName, p.podGroups)
		}
		if least := there.Spec.SchedulingPolicy.Gang; pods == 0 || keptOut || least == nil || pods >= least.MinCount {
			continue
		}
		if write, differs := (jobs.Gang{Name: there.Name, Pods: pods, Waiting: true}).Ensure(p.js, kind, p.podGroups); differs {
			p.plan.First = append(p.plan.First, write)
		}
	}
}

// podsToRun returns how many pods of the replicated job run or still have to run, and whether some of them are not
// ready yet.
func (p *planner) podsToRun(rj *jobset.ReplicatedJob) (pods int32, waiting bool) {
	for index := range rj.Replicas {
		name := jobName(p.js, rj.Name, index)
		job := p.children.currentJob(name)
		switch {
		case p.withoutRoom(rj)[name]: // the others would wait for it
		case job != nil && ended(job): // it may have been suspended before its end was observed
		case job == nil || suspended(job):
			pods += p.sizeOf(rj)
			waiting = true
		default:
			pods += jobs.PodsLeft(job)
			waiting = waiting || job.Status.Active > ptr.Deref(job.Status.Ready, 0)
		}
	}
	return pods, waiting
}
