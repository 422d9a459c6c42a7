package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// describe returns what a VCJob requests: one pod set for each task that has pods. A job that was scaled to no pods
// gives its quota back, and queues anew when it has pods again.
func describe(job *volcano.Job, facts jobs.Facts) jobs.Description {
	mistake := validate(job, facts)
	job = within(job)
	d := jobs.Description{Queue: queueOf(job), PriorityClass: job.Spec.PriorityClassName}
	if estimate := job.Spec.RunningEstimate; estimate != nil {
		d.Estimate = estimate.Duration
	}
	d.Paused = stopped(job) || job.Status.State.Reason == admittedAnewReason || totalOf(job) == 0 && !hasOutcome(job)
	least, elastic, plugins := leastOf(job), elasticTask(job), pluginsOf(job)
	together, optional := anyPods(job)
	ended := endedTasks(job, optional, facts.Queued)
	for i := range job.Spec.Tasks {
		if ended[i] {
			together -= countOf(&job.Spec.Tasks[i])
		}
	}
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if countOf(task) == 0 || ended[i] {
			continue
		}
		template := *task.Template.DeepCopy()
		template.Spec.SchedulerName = schedulerName(job, template.Spec.SchedulerName, facts)
		if template.Spec.HostNetwork {
			for _, p := range plugins { // no two pods are placed on a node whose port they take
				p.openPorts(job, nameOf(job, i), &template.Spec)
			}
		}
		set := kueue.PodSet{Name: kueue.PodSetReference(nameOf(job, i)), Count: countOf(task), Template: template}
		if least[i] < countOf(task) {
			set.MinCount = ptr.To(max(least[i], 1)) // the API has no smaller one: the annotation below says that it may be none
		}
		delete(set.Template.Annotations, muster.MinPodsAnnotation)
		if optional[i] {
			jobs.SetNumber(&set.Template.ObjectMeta, muster.MinPodsAnnotation, max(together, 1))
		}
		delete(set.Template.Annotations, muster.MinReplicasAnnotation) // only one task is resized, and which is said here
		if i == elastic {
			jobs.SetNumber(&set.Template.ObjectMeta, muster.MinReplicasAnnotation, *set.MinCount)
		}
		d.PodSets = append(d.PodSets, set)
	}
	if d.Mistake = mistake; mistake == nil {
		d.Mistake = jobs.RequestTopology(d.PodSets,
			func(int) jobs.Ranks { return jobs.Ranks{IndexLabel: volcano.TaskIndexKey} })
	}
	return d
}

// validate returns what is wrong with the job that the API server cannot validate.
func validate(job *volcano.Job, facts jobs.Facts) *write.Event {
	problem := ""
	switch cyclic := cyclicTask(job); {
	case cyclic != "":
		problem = fmt.Sprintf("The tasks' dependencies form a cycle, through task %s", cyclic)
	case job.Spec.NetworkTopology != nil && job.Spec.NetworkTopology.Mode != volcano.SoftNetworkTopologyMode:
		problem = "spec.networkTopology is hard, and Muster has no HyperNodes: ask for a domain with the annotation " +
			kueue.PodSetRequiredTopologyAnnotation + " on the pod templates instead"
	default:
		problem = cmp.Or(invalidArguments(job), invalidName(job, facts), invalidSize(job))
	}
	if problem != "" {
		return jobs.ImmutableMistake(problem)
	}
	if problem = cmp.Or(badSize(job), tooManyHosts(job)); problem != "" {
		return jobs.Mistake(problem) // replicas may be changed
	}
	return nil
}

// endedTasks returns the tasks of which all pods have ended, in a job of which some tasks can do without pods. When the
// job queues again for tasks that had no pods, the tasks that have ended are not asked for: they could be given the
// quota once more, in place of tasks that wait for it. Tasks that the job's Workload asks for already are not returned.
func endedTasks(job *volcano.Job, optional []bool, queued []kueue.PodSet) []bool {
	ended := make([]bool, len(job.Spec.Tasks))
	if !slices.Contains(optional, true) {
		return ended
	}
	endedPods, left := readPodRecords(&job.Status).ended, false
	for i := range job.Spec.Tasks {
		name := nameOf(job, i)
		asked := slices.ContainsFunc(queued, func(ps kueue.PodSet) bool { return string(ps.Name) == name })
		ended[i] = countOf(&job.Spec.Tasks[i]) > 0 && !asked
		for index := int32(0); ended[i] && index < countOf(&job.Spec.Tasks[i]); index++ {
			ended[i] = endedPods[slot(name, index)] != ""
		}
		left = left || countOf(&job.Spec.Tasks[i]) > 0 && !ended[i]
	}
	if !left {
		clear(ended) // the job has ended
	}
	return ended
}
