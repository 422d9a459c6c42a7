package vcjob

import (
	"k8s.io/utils/ptr"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// totalOf is how many pods the job has.
func totalOf(job *volcano.Job) (total int32) {
	for i := range job.Spec.Tasks {
		total += job.Spec.Tasks[i].Replicas
	}
	return total
}

// taskMinimum is how many pods of the task must run together: all unless it says
// otherwise.
func taskMinimum(task *volcano.TaskSpec) int32 {
	return min(ptr.Deref(task.MinAvailable, task.Replicas), task.Replicas)
}

// minAvailable is how many pods must run together: the tasks' sum unless the job says
// otherwise.
func minAvailable(job *volcano.Job) int32 {
	if job.Spec.MinAvailable > 0 {
		return job.Spec.MinAvailable
	}
	return tasksMinimum(job)
}

func tasksMinimum(job *volcano.Job) (sum int32) {
	for i := range job.Spec.Tasks {
		sum += taskMinimum(&job.Spec.Tasks[i])
	}
	return sum
}

// leastOf is, for each task, how many of its pods must run for the job to. Together they
// are as many as must, taken from the tasks in their order: what a task says that it needs
// comes first where the job has room for all that tasks say, as Volcano counts it, else the
// first tasks have all that they say.
func leastOf(job *volcano.Job) []int32 {
	least := make([]int32, len(job.Spec.Tasks))
	left := minAvailable(job)
	take := func(upTo func(*volcano.TaskSpec) int32) {
		for i := range job.Spec.Tasks {
			more := max(0, min(left, upTo(&job.Spec.Tasks[i])-least[i]))
			least[i] += more
			left -= more
		}
	}
	take(func(task *volcano.TaskSpec) int32 { return min(ptr.Deref(task.MinAvailable, 0), task.Replicas) })
	take(func(task *volcano.TaskSpec) int32 { return task.Replicas })
	return least
}

// elasticTask is the task whose pods beyond the least the queue may add and take back while
// the job runs, -1 if there is none: of several such tasks the queue could resize only one,
// so they keep the size that they were admitted with.
func elasticTask(job *volcano.Job) int {
	found := -1
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
