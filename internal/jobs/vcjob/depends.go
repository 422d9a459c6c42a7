package vcjob

import (
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/replicas"
)

// circleOf is a task that depends on itself through others, "" if none does.
func circleOf(job *volcano.Job) string {
	free := map[string]bool{}
	for range job.Spec.Tasks {
		before := len(free)
		for i := range job.Spec.Tasks {
			if waits := waitsFor(&job.Spec.Tasks[i], func(name string) bool { return !free[name] }); len(waits) == 0 {
				free[nameOf(job, i)] = true
			}
		}
		if len(free) == before {
			break
		}
	}
	for i := range job.Spec.Tasks {
		if name := nameOf(job, i); !free[name] {
			return name
		}
	}
	return ""
}

func waitsFor(task *volcano.TaskSpec, holds func(string) bool) (out []string) {
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

// mayBegin reports whether the tasks run that the task depends on: all of them, or any.
func (l *look) mayBegin(task *volcano.TaskSpec) bool {
	if task.DependsOn == nil || len(task.DependsOn.Name) == 0 {
		return true
	}
	waits := waitsFor(task, func(name string) bool { return !l.runs(name) })
	if task.DependsOn.Iteration == volcano.IterationAll {
		return len(waits) == 0
	}
	return len(waits) < len(task.DependsOn.Name)
}

// runs reports whether as many pods of the task run, or have done their work, as must.
func (l *look) runs(name string) bool {
	for i := range l.job.Spec.Tasks {
		if nameOf(l.job, i) == name {
			return l.count(name, replicas.Running, replicas.Succeeded) >= taskMinimum(&l.job.Spec.Tasks[i])
		}
	}
	return false
}

// waitsInVain is a task that waits for others of which nothing runs, nor will, "" if there
// is none: all pods that could be made have ended.
func (l *look) waitsInVain() string {
	waits, ended := "", false
	for i := range l.roster.Replicas {
		switch r := &l.roster.Replicas[i]; {
		case r.Phase.Ended():
			ended = true
		case r.Pod != nil || l.mayBegin(l.tasks[r.Group]):
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
