package vcjob

import (
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// cyclicTask returns a task that depends on itself through others, "" if there is none.
func cyclicTask(job *volcano.Job) string {
	free := map[string]bool{}
	for range job.Spec.Tasks {
		before := len(free)
		for task, spec := range tasksIn(job) {
			if waits := dependenciesWhere(spec, func(name string) bool { return !free[name] }); len(waits) == 0 {
				free[task] = true
			}
		}
		if len(free) == before {
			break
		}
	}
	for name := range tasksIn(job) {
		if !free[name] {
			return name
		}
	}
	return ""
}

func dependenciesWhere(task *volcano.TaskSpec, holds func(string) bool) (out []string) {
	if task.DependsOn == nil {
		return nil
	}
	for _, name := range task.DependsOn.Name {
		if holds(name) {
			out = append(out, name)
		}
	}
	return out
}

// mayStart reports whether the tasks that the task depends on run: all of them, or any if it says so.
func (v *view) mayStart(task *volcano.TaskSpec) bool {
	if task.DependsOn == nil || len(task.DependsOn.Name) == 0 {
		return true
	}
	waits := dependenciesWhere(task, func(name string) bool { return !v.isUsable(name) })
	if task.DependsOn.Iteration == volcano.IterationAny {
		return len(waits) < len(task.DependsOn.Name)
	}
	return len(waits) == 0
}

// isUsable reports whether the minimum of the task's pods is ready or has succeeded. A running pod that is
// not ready cannot be used by others yet.
func (v *view) isUsable(name string) bool {
	task, there := v.tasks[name]
	if !there {
		return false
	}
	if is, known := v.usable[name]; known {
		return is
	}
	usable := pointers.Count(v.roster.Group(name), func(r *replicas.Replica) bool {
		return r.Ready || r.Phase == replicas.Succeeded
	})
	v.usable[name] = usable >= taskMinimum(task)
	return v.usable[name]
}

// blockedTask returns a task whose dependencies can never run, as all pods that could be created have
// finished; "" if there is none.
func (v *view) blockedTask() string {
	waits, ended := "", false
	for r := range pointers.To(v.roster.Replicas) {
		switch {
		case r.Phase.Finished():
			ended = true
		case r.Pod != nil || v.mayStart(v.tasks[r.Group]):
			return ""
		case waits == "":
			waits = r.Group
		}
	}
	if !ended {
		return ""
	}
	return waits
}
