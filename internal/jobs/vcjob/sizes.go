package vcjob

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// sizes knows how many pods of each task may run, must run and are needed.
type sizes struct{ *view }

// mostPods is how many pods a job may have. Muster's definition and policies refuse larger jobs, and negative numbers,
// but not jobs that were stored before them, or where the definition is Volcano's.
const mostPods = 10000

// badSize returns what is wrong with the job's numbers of pods, "" if nothing is.
func badSize(job *volcano.Job) string {
	total := int64(0)
	for name, task := range tasksIn(job) {
		if task.Replicas < 0 {
			return fmt.Sprintf("replicas of task %s must not be negative, and are %d", name, task.Replicas)
		}
		total += int64(countOf(task))
	}
	if total <= mostPods {
		return ""
	}
	return fmt.Sprintf("replicas of all tasks, or %s in place of those of its task, must be at most %d together, and are %d",
		muster.MaxReplicasAnnotation, mostPods, total)
}

// within returns the job, or, if it has a badSize, a copy that asks for no negative number of pods, and for
// no more than mostPods, since sizes decide how much memory a plan takes. A job of a bad size is not queued;
// one that runs already keeps its pods.
func within(job *volcano.Job) *volcano.Job {
	if badSize(job) == "" {
		return job
	}
	out, left := job.DeepCopy(), int32(mostPods)
	for task := range pointers.To(out.Spec.Tasks) {
		task.Replicas = max(0, min(task.Replicas, left))
		left -= task.Replicas
	}
	for task := range pointers.To(out.Spec.Tasks) {
		if _, most, isSet := annotated(task); isSet {
			most = min(most, task.Replicas+left)
			left -= most - task.Replicas
			jobs.SetNumber(&task.Template.ObjectMeta, muster.MaxReplicasAnnotation, most)
		}
	}
	return out
}

// totalOf returns the number of pods of the job.
func totalOf(job *volcano.Job) (total int32) {
	for task := range pointers.To(job.Spec.Tasks) {
		total += countOf(task)
	}
	return total
}

// countOf returns the number of pods of the task: the maximum in its template's annotations, if it has them.
func countOf(task *volcano.TaskSpec) int32 {
	if _, most, isSet := annotated(task); isSet {
		return most
	}
	return task.Replicas
}

// annotated returns the bounds of the task's size in the annotations of its template. Invalid
// annotations count as absent; invalidSize reports them.
func annotated(task *volcano.TaskSpec) (least, most int32, isSet bool) {
	least, isSet = jobs.ReplicasIn(task.Template.Annotations, muster.MinReplicasAnnotation)
	most = task.Replicas
	if n, ok := jobs.ReplicasIn(task.Template.Annotations, muster.MaxReplicasAnnotation); ok {
		most = n
	}
	return least, most, isSet && least <= task.Replicas && task.Replicas <= most
}

// invalidSize returns what is wrong with these annotations, "" if nothing is.
func invalidSize(job *volcano.Job) string {
	elastic := 0
	for name, task := range tasksIn(job) {
		_, fewest := task.Template.Annotations[muster.MinReplicasAnnotation]
		_, most := task.Template.Annotations[muster.MaxReplicasAnnotation]
		if !fewest && !most {
			continue
		}
		_, isNumber := jobs.ReplicasIn(task.Template.Annotations, muster.MaxReplicasAnnotation)
		if _, _, isSet := annotated(task); !isSet || most && !isNumber {
			return fmt.Sprintf("the annotations %s and, if it is there, %s of task %s must be numbers up to %d of which replicas is not below the first nor above the second",
				muster.MinReplicasAnnotation, muster.MaxReplicasAnnotation, name, jobs.MostReplicas)
		}
		elastic++
	}
	if elastic > 1 {
		return "one task of a job may have the annotation " + muster.MinReplicasAnnotation
	}
	return ""
}

// annotatedTask returns the index of the task with these annotations, -1 if there is none.
func annotatedTask(job *volcano.Job) int {
	return slices.IndexFunc(job.Spec.Tasks,
		func(task volcano.TaskSpec) bool { _, _, isSet := annotated(&task); return isSet })
}

// taskMinimum returns how many pods of the task must run together; all of them by default.
func taskMinimum(task *volcano.TaskSpec) int32 {
	if least, _, isSet := annotated(task); isSet {
		return least
	}
	return min(ptr.Deref(task.MinAvailable, task.Replicas), task.Replicas)
}

// minAvailable returns how many pods of the job must run together; by default the sum over its tasks.
// For a task with annotations, these decide.
func minAvailable(job *volcano.Job) (sum int32) {
	switch {
	case job.Spec.MinAvailable <= 0:
		return tasksMinimum(job)
	case annotatedTask(job) < 0:
		return job.Spec.MinAvailable
	}
	for _, least := range leastOf(job) {
		sum += least
	}
	return sum
}

func tasksMinimum(job *volcano.Job) (sum int32) {
	for task := range pointers.To(job.Spec.Tasks) {
		sum += taskMinimum(task)
	}
	return sum
}

// leastOf returns, for each task, the minimum of its pods for the job to run. The minimums add up to minAvailable and
// are assigned in the order of tasks. As in Volcano, the tasks' own minimums come first if minAvailable covers them
// all; otherwise the minimums that tasks declare do, and then the first tasks get theirs in full. For a task with
// annotations, these decide. Tasks of anyPods can start with fewer.
func leastOf(job *volcano.Job) []int32 {
	least := make([]int32, len(job.Spec.Tasks))
	left := job.Spec.MinAvailable
	if left <= 0 {
		left = tasksMinimum(job)
	}
	fixed := annotatedTask(job)
	if fixed >= 0 {
		least[fixed] = taskMinimum(&job.Spec.Tasks[fixed])
		left -= least[fixed]
	}
	take := func(upTo func(*volcano.TaskSpec) int32) {
		for i := range job.Spec.Tasks {
			if i == fixed {
				continue
			}
			more := max(0, min(left, upTo(&job.Spec.Tasks[i])-least[i]))
			least[i] += more
			left -= more
		}
	}
	take(func(task *volcano.TaskSpec) int32 {
		if task.MinAvailable == nil && (fixed >= 0 || isBelowTasks(job)) {
			return 0
		}
		return taskMinimum(task)
	})
	take(func(task *volcano.TaskSpec) int32 { return task.Replicas })
	return least
}

// anyPods returns how many pods of the job must run together, of whichever tasks, and which tasks can do without any:
// as in Volcano, all of them where minAvailable is below the sum of the tasks' own minimums, which do not count then,
// and else the tasks with a minimum of 0. So with three tasks of one pod and a minAvailable of 2, any two of them
// start.
//
// A task with annotations has the minimum that these say, and a task that other tasks wait for needs pods of its own,
// as they would never start. Nor is there a choice for a job with pods of one task.
func anyPods(job *volcano.Job) (together int32, optional []bool) {
	optional = make([]bool, len(job.Spec.Tasks))
	if pointers.Count(job.Spec.Tasks, func(task *volcano.TaskSpec) bool { return countOf(task) > 0 }) < 2 {
		return 0, optional
	}
	fixed := annotatedTask(job)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		optional[i] = i != fixed && countOf(task) > 0 && (taskMinimum(task) == 0 || isBelowTasks(job)) &&
			!isAwaited(job, nameOf(job, i))
	}
	return max(minAvailable(job), 1), optional
}

// isBelowTasks reports whether the job's own minimum is below the sum of its tasks' minimums.
func isBelowTasks(job *volcano.Job) bool {
	return job.Spec.MinAvailable > 0 && job.Spec.MinAvailable < tasksMinimum(job) && annotatedTask(job) < 0
}

// isAwaited reports whether a task with pods depends on the task.
func isAwaited(job *volcano.Job, name string) bool {
	return slices.ContainsFunc(job.Spec.Tasks, func(task volcano.TaskSpec) bool {
		return countOf(&task) > 0 && task.DependsOn != nil && slices.Contains(task.DependsOn.Name, name)
	})
}

// elasticTask returns the task that the queue may resize while the job runs, -1 if there is none. The queue can resize
// only one task: if several have a lower minimum, they keep their admitted size, except for one with annotations.
func elasticTask(job *volcano.Job) int {
	found := -1
	if i := annotatedTask(job); i >= 0 {
		if taskMinimum(&job.Spec.Tasks[i]) < countOf(&job.Spec.Tasks[i]) {
			return i
		}
		return -1
	}
	for i, least := range leastOf(job) {
		if max(least, 1) >= job.Spec.Tasks[i].Replicas {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// resizableTask returns the index of the task that the queue may resize while the job is admitted, or -1 if there is
// none. That is the task that was admitted as elastic, although the job's numbers may have changed since.
func (s *sizes) resizableTask() int {
	for i := range s.job.Spec.Tasks {
		if s.seen.Admission.PodSets[nameOf(s.job, i)].ChoseCount() {
			return i
		}
	}
	return elasticTask(s.job)
}
