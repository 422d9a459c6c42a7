package jobset

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// gangs decides which pods kube-scheduler binds together, and the PodGroups for that.
type gangs struct {
	*view
	sizes   *sizes
	layouts *layouts
	// podGroups are the PodGroups among the observed children, so that looking for one need not scan all Jobs.
	podGroups []client.Object
	// joining caches joins by replicated job.
	joining map[string]bool
	// missing says that a PodGroup is missing, without which the pods of its gang cannot be created.
	missing bool
}

// gangName returns the name of the gang of a replicated job. Each replicated job is a gang of its own, since its Jobs
// start together, while the Jobs of a second replicated job may have to wait for them.
func gangName(js *jobset.JobSet, replicatedJob string) string { return js.Name + "-" + replicatedJob }

// groupOf returns the PodGroup that new pods of the replicated job join, and the priority class that they name.
func (g *gangs) groupOf(rj *jobset.ReplicatedJob) (group, priorityClass string) {
	return g.seen.Facts.Priorities.GangFor(gangName(g.js, rj.Name),
		rj.Template.Spec.Template.Spec.PriorityClassName, g.podGroups)
}

// joins reports whether kube-scheduler is to bind the pods of the replicated job as a gang: they were admitted
// together, and the cluster supports gangs. The following pods join none:
//
//   - pods whose user has set a scheduling group;
//   - pods that find their exclusive domain by pod affinity, which kube-scheduler does not guarantee to work in gangs;
//   - pods that are gated until they get a place, since the whole gang would be held back by one gated pod;
//   - pods whose places nobody else can take;
//   - pods of a replicated job of which some Jobs already run without a group, or in one of another priority;
//   - pods of which one is enough: a PodGroup would only cost two writes.
func (g *gangs) joins(rj *jobset.ReplicatedJob) bool {
	if joins, known := g.joining[rj.Name]; known {
		return joins
	}
	joins := g.mayJoin(rj)
	g.joining[rj.Name] = joins
	return joins
}

func (g *gangs) mayJoin(rj *jobset.ReplicatedJob) bool {
	granted, ok := g.seen.Admission.PodSets[rj.Name]
	if !ok || !g.seen.Facts.NativeGangs || rj.Template.Spec.Template.Spec.SchedulingGroup != nil ||
		exclusionOf(g.js, rj).isAutomatic() && len(granted.Places) == 0 ||
		boundsOf(g.js, rj).Elastic && len(granted.Places) > 0 || g.oneIsEnough(rj) || granted.ClosedToOthers() {
		return false
	}
	for index := range rj.Replicas {
		if len(granted.For(g.layouts.of(rj, granted).part(index)).Gates) > 0 {
			return false
		}
	}
	group, _ := g.groupOf(rj)
	for index := range rj.Replicas {
		job := g.children.currentJob(jobName(g.js, rj.Name, index))
		if job != nil && job.DeletionTimestamp.IsZero() && !jobs.IsInPodGroup(&job.Spec.Template.Spec, group) {
			return false
		}
	}
	return true
}

// oneIsEnough reports whether no pod of the replicated job has to wait for another.
func (g *gangs) oneIsEnough(rj *jobset.ReplicatedJob) bool {
	if b := boundsOf(g.js, rj); b.Elastic {
		return b.Least <= 1
	}
	return podCount(rj) <= 1
}

// leaves reports whether the Job's template belongs to a gang that new pods would not join. A template cannot be
// changed in this respect.
func (g *gangs) leaves(job, fresh *batchv1.Job) bool {
	return fresh.Spec.Template.Spec.SchedulingGroup == nil &&
		jobs.IsOfGang(&job.Spec.Template.Spec, gangName(g.js, job.Labels[jobset.ReplicatedJobNameKey]))
}

// excluded returns the Jobs that never had a ready pod and whose gang has another priority than new pods of these Jobs
// get, for instance because the default class changed after the PodGroup was created. Their templates cannot be
// changed, so they are recreated in a gang of the right priority. due is when to look for further ones, zero for never.
func (g *gangs) excluded() (out []*batchv1.Job, due time.Time) {
	for _, job := range g.children.active {
		spec := &job.Spec.Template.Spec
		if suspended(job) || spec.SchedulingGroup == nil || job.Status.Succeeded > 0 || ptr.Deref(job.Status.Ready, 0) > 0 ||
			!jobs.IsOfGang(spec, gangName(g.js, job.Labels[jobset.ReplicatedJobNameKey])) {
			continue
		}
		if !g.seen.Facts.Priorities.Excludes(*spec.SchedulingGroup.PodGroupName, spec.PriorityClassName, g.podGroups) {
			continue
		}
		// The cache may not show a new class yet, and pods of the old default may be about to become ready.
		if at := job.CreationTimestamp.Add(pollInterval); !g.seen.Now.Before(at) {
			out = append(out, job)
		} else {
			due = replicas.Earlier(due, at)
		}
	}
	return out, due
}

// ensure returns the writes of each gang's PodGroup, which must precede its pods, with a MinCount of the admitted pods
// that still have to run: if it counted pods that have succeeded, the gang would wait for them forever. Once all its
// pods are ready, MinCount does not matter and is not updated.
func (g *gangs) ensure() (writes []write.Write) {
	for rj := range pointers.To(g.js.Spec.ReplicatedJobs) {
		pods, waiting := g.sizes.podsToRun(rj)
		if pods == 0 {
			continue
		}
		if !g.joins(rj) {
			if waiting {
				writes = append(writes, g.relax(rj)...)
			}
			continue
		}
		if b := boundsOf(g.js, rj); b.Elastic {
			pods = min(pods, b.Least)
		}
		group, class := g.groupOf(rj)
		gang := jobs.Gang{Name: group, Pods: pods, Waiting: waiting, PriorityClass: class}
		if write, differs := gang.Ensure(g.js, kind, g.podGroups); differs {
			writes = append(writes, write)
			g.missing = g.missing || write.Verb() == "create"
		}
	}
	return writes
}

// relax returns writes that lower the MinCount of PodGroups in which Jobs of the replicated job still run though it
// forms no gang any more, because it became smaller or some of its Jobs were given other nodes: replacement pods would
// wait forever for pods that do not come back. A PodGroup whose Jobs are recreated because of its priority keeps its
// MinCount until they are gone.
func (g *gangs) relax(rj *jobset.ReplicatedJob) (writes []write.Write) {
	for _, there := range jobs.ChildrenOf[*schedulingv1beta1.PodGroup](g.podGroups) {
		pods, keptOut := int32(0), false
		for _, job := range g.children.active {
			spec := &job.Spec.Template.Spec
			if suspended(job) || !isOf(job, rj.Name) || !jobs.IsInPodGroup(spec, there.Name) {
				continue
			}
			pods += jobs.PodsLeft(job)
			keptOut = keptOut || g.seen.Facts.Priorities.Excludes(there.Name, spec.PriorityClassName, g.podGroups)
		}
		if least := there.Spec.SchedulingPolicy.Gang; pods == 0 || keptOut || least == nil || pods >= least.MinCount {
			continue
		}
		gang := jobs.Gang{Name: there.Name, Pods: pods, Waiting: true}
		if write, differs := gang.Ensure(g.js, kind, g.podGroups); differs {
			writes = append(writes, write)
		}
	}
	return writes
}
