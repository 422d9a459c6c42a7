package trainingjob

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// restartPolicyOf returns what to do about a worker that has ended. With the agent, Always is OnFailure: a training that
// is done would be run again, and the job would never end.
func restartPolicyOf(job *breezeml.TrainingJob, agent lattice) breezeml.RestartPolicy {
	switch policy := job.Spec.ReplicaSpecs.RestartPolicy; {
	case policy == "":
		return breezeml.RestartNever
	case policy == breezeml.RestartAlways && agent.injected:
		return breezeml.RestartOnFailure
	default:
		return policy
	}
}

// isRetried reports whether a worker whose pod has failed is recreated.
func isRetried(policy breezeml.RestartPolicy, pod *corev1.Pod) bool {
	switch policy {
	case breezeml.RestartAlways, breezeml.RestartOnFailure:
		return true
	case breezeml.RestartExitCode:
		code, ended := exitCodeOf(pod)
		return !ended || code >= 128 // it never ran, or its program was ended by a signal
	}
	return false
}

// exitCodeOf returns the exit code of the training container, or of one that failed before it could start; false if no
// container has ended, as in a pod that its node has refused. Statuses are in the order of names, not in that of the
// containers, so the first is not that of the first container.
func exitCodeOf(pod *corev1.Pod) (code int32, ended bool) {
	training := trainingContainer(&pod.Spec)
	for _, c := range replicas.Containers(pod) {
		if training != nil && c.Name == training.Name && c.State == replicas.ContainerTerminated {
			return c.ExitCode, true
		}
	}
	code, _, ended = replicas.Failure(pod)
	return code, ended
}

// judge returns how the job has ended, nil if it has not.
func (p *planner) judge() *jobs.Outcome {
	runs := p.job.Status.Stage == breezeml.StageRunning
	if runs {
		if over := p.ended(); over != nil {
			return over
		}
	}
	due := p.deadline()
	if !due.IsZero() && !p.seen.Now.Before(due) {
		return &jobs.Outcome{Message: p.message(breezeml.DeadlineMessage)}
	}
	p.plan.DueBy(due)
	if runs {
		return p.backoffExceeded()
	}
	return nil
}

// ended returns how the workers of a running job have ended, nil if they have not.
func (p *planner) ended() *jobs.Outcome {
	if failed, first := p.failedForGood(); failed > 0 {
		return &jobs.Outcome{Message: fmt.Sprintf(breezeml.FailedMessage, p.job.Name, failed, failureOf(first))}
	}
	if len(p.roster.Replicas) > 0 && p.roster.All(func(r *replicas.Replica) bool { return r.Phase == replicas.Succeeded }) {
		return &jobs.Outcome{Succeeded: true, Message: p.message(breezeml.SucceededMessage)}
	}
	return nil
}

// failedForGood returns the number of workers whose pods have failed and are not recreated, and the first of those
// pods. Failed workers beyond the current size count too: shrinking does not undo a failure.
func (p *planner) failedForGood() (int, *corev1.Pod) {
	var (
		count int
		first *corev1.Pod
	)
	policy := restartPolicyOf(p.job, p.lattice())
	note := func(pod *corev1.Pod) {
		if count++; first == nil {
			first = pod
		}
	}
	for i := range p.roster.Replicas {
		if r := &p.roster.Replicas[i]; r.Phase == replicas.Failed && !r.NeedsRestart {
			note(r.Pod)
		}
	}
	for _, pod := range p.roster.Surplus {
		if pod.Status.Phase == corev1.PodFailed && !replicas.IsTerminating(pod) && !replicas.Disrupted(pod) && !p.isLost(pod) && !isRetried(policy, pod) {
			note(pod)
		}
	}
	return count, first
}

// backoffExceeded returns a failure if the workers have been restarted more often than the backoff limit allows, else
// nil.
func (p *planner) backoffExceeded() *jobs.Outcome {
	limit := p.job.Spec.RunPolicy.BackoffLimit
	if limit == nil {
		return nil
	}
	var (
		restarts int64
		because  *corev1.Pod
	)
	for _, n := range p.job.Status.Restarts {
		restarts += int64(n)
	}
	for i := range p.roster.Replicas {
		r := &p.roster.Replicas[i]
		if r.UID() == "" {
			continue
		}
		inPlace := restartsInPlace(r.Pod)
		if r.NeedsRestart {
			inPlace++
		}
		if restarts += inPlace; inPlace > 0 && because == nil {
			because = r.Pod
		}
	}
	if restarts <= int64(*limit) || because == nil {
		return nil
	}
	return &jobs.Outcome{Message: fmt.Sprintf(breezeml.BackoffMessage, p.job.Name, failureOf(because))}
}

// restartsInPlace returns how often containers of the pod were restarted on their node.
func restartsInPlace(pod *corev1.Pod) int64 {
	var n int64
	for i := range pod.Status.ContainerStatuses {
		n += int64(pod.Status.ContainerStatuses[i].RestartCount)
	}
	return n
}

// failureOf describes how a pod has failed: by the exit code that decides whether it is retried, if it is one of a
// failure.
func failureOf(pod *corev1.Pod) string {
	code, why, ok := replicas.Failure(pod)
	if of, _ := exitCodeOf(pod); of != 0 && of != code {
		code = of
		if ok {
			why = "" // that of another container
		}
	}
	switch {
	case ok:
		return replicas.WithReason(fmt.Sprintf("exit code %d in %s", code, pod.Name), why)
	case !replicas.IsFinished(pod):
		return fmt.Sprintf("%d restarts of containers in %s", restartsInPlace(pod), pod.Name)
	}
	return fmt.Sprintf("%s: %s", pod.Name, why)
}

// memoryOf returns what the status records about a worker.
func (p *planner) memoryOf(_ string, index int32) replicas.Record {
	key := strconv.Itoa(int(index))
	return replicas.Record{Restarts: p.job.Status.Restarts[key], Settled: p.job.Status.SettledRestarts[key]}
}

// restart restarts the workers that are to be recreated, once that is due. The status is written first: it marks their
// pods as pods of an earlier attempt, so that nothing is counted twice.
func (p *planner) restart() {
	var next time.Time
	p.restarting, next = p.roster.Restart(p.seen.Now)
	p.plan.DueBy(next)
	for i := range p.roster.Replicas {
		if r := &p.roster.Replicas[i]; r.NeedsRestart {
			p.waiting = append(p.waiting, *r)
		}
	}
	if len(p.restarting) == 0 {
		return
	}
	p.plan.StatusFirst = true
	p.countLosses()
	for i := range p.restarting {
		p.countRestart(p.roster.Get(worker, p.restarting[i].Index))
	}
	p.addEvent(jobs.Warning(breezeml.RestartingReason, p.restartingMessage(p.restarting)))
}

// countRestart records the restart counts of a worker.
func (p *planner) countRestart(r *replicas.Replica) {
	s, key := &p.job.Status, strconv.Itoa(int(r.Index))
	if s.Restarts == nil {
		s.Restarts = map[string]int32{}
	}
	s.Restarts[key] = r.Restarts
	if r.Settled == 0 {
		delete(s.SettledRestarts, key)
		return
	}
	if s.SettledRestarts == nil {
		s.SettledRestarts = map[string]int32{}
	}
	s.SettledRestarts[key] = r.Settled
}

// restartingMessage says how many workers are restarted, and how the first has failed.
func (p *planner) restartingMessage(workers []replicas.Replica) string {
	return fmt.Sprintf(breezeml.RestartingMessage, p.job.Name, len(workers), failureOf(workers[0].Pod))
}
