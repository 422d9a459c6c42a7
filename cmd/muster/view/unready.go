package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podproblem"
)

// mostUnready is of how many jobs in a list the pods are read. Each kind of job costs a request.
const mostUnready = 20

// noneReady is the message of a job that has been starting for long.
const noneReady = "none of its pods is ready yet"

// Unready returns the jobs that may run and lack ready pods, at most mostUnready: jobs without any ready pod first, and
// of these the latest job first.
func Unready(jobs []Job) []*Job {
	var out []*Job
	for i := range jobs {
		job := &jobs[i]
		if job.lacksPods() {
			out = append(out, job)
		}
	}
	slices.SortStableFunc(out, func(a, b *Job) int {
		return cmp.Or(cmp.Compare(a.PodsReady, b.PodsReady), b.since().Compare(a.since()))
	})
	return out[:min(len(out), mostUnready)]
}

// lacksPods reports whether the job may run and has fewer ready pods than it asks for.
func (j *Job) lacksPods() bool {
	return j.State == Starting || j.State == Running && j.PodsReady < j.PodsAsked
}

// since returns when the job was started, or was created if it did not queue.
func (j *Job) since() time.Time {
	if j.StartedAt != nil {
		return j.StartedAt.Time
	}
	return j.CreatedAt.Time
}

// OwnPods returns the pods that are the job's. Pods that are older than the job belonged to an earlier job of the
// same name, and do not count.
func (j *Job) OwnPods(pods []corev1.Pod) []corev1.Pod {
	label := j.PodLabel()
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return label == "" || pod.Namespace != j.Namespace || pod.Labels[label] != j.Name ||
			pod.CreationTimestamp.Before(&j.CreatedAt)
	})
}

// NoteProblem sets the reason and message of a job that is not ready to what keeps most of its unready pods from being
// ready. The pods are the job's own.
func (j *Job) NoteProblem(pods []corev1.Pod, claims podproblem.Claims, mounts podproblem.Mounts, now time.Time) {
	found := podProblems(pods, claims, mounts, true, func(string) bool { return false }, now)
	if len(found) > 0 {
		j.noteProblem(&found[0])
	}
}

func (j *Job) noteProblem(problem *PodProblem) {
	message := cmp.Or(problem.Message, "its pods say no more")
	if problem.Pods > 1 {
		message += fmt.Sprintf(" (%d pods, as %s)", problem.Pods, problem.Example)
	} else {
		message += fmt.Sprintf(" (pod %s)", problem.Example)
	}
	if j.Reason == "" && (j.Message == "" || j.Message == noneReady) {
		j.Reason, j.Message = problem.Reason, message
		return
	}
	j.Message = join(j.Message, problem.Reason+": "+message)
}
