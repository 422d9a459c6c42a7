package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Reasons of events: failedCreate is the operator's, and Kubernetes', for a pod that could not be created,
// changeRefused the operator's for a change of the job that the API server refuses.
const (
	failedCreate  = "FailedCreate"
	changeRefused = "ChangeRefused"
)

// NeedsWarnings reports whether the Warning events of the job may say why it does not run, or not with the pods that it
// should have. s.Pods must hold all pods of the job.
func (s *Snapshot) NeedsWarnings(job *Job) bool {
	return s.lacksAllPods(job) || s.lacksSomePods(job) || s.hasSurplusPods(job)
}

// warningAbout returns the last warning about a job that lacks pods or has too many, or the last eviction of one that
// waits, nil if there is none. The Workload is nil if the job has none.
func warningAbout(snapshot *Snapshot, job *Job, workload *kueue.Workload) *Warning {
	switch {
	case workload != nil && job.State == Pending:
		return lastEviction(workload)
	case snapshot.lacksAllPods(job):
		return lastWarning(snapshot.Warnings)
	case snapshot.lacksSomePods(job):
		return lastWarning(warningsOf(snapshot.Warnings, failedCreate, changeRefused))
	case snapshot.hasSurplusPods(job):
		return lastWarning(warningsOf(snapshot.Warnings, changeRefused))
	}
	return nil
}

// lacksSomePods reports whether a job that may run has fewer pods than it may have. Of its warnings only warnings about
// pods and sizes say why: the job has run for some time, and other warnings may be out of date.
func (s *Snapshot) lacksSomePods(job *Job) bool {
	return (job.State == Starting || job.State == Running) && 0 < len(s.Pods) && len(s.Pods) < int(job.PodsAsked)
}

// hasSurplusPods reports whether an elastic job that runs has more pods than its queue lets it have.
func (s *Snapshot) hasSurplusPods(job *Job) bool {
	return job.State == Running && job.PodsMost > 0 && len(s.Pods) > int(job.PodsAsked)
}

// warningsOf returns the events of these reasons.
func warningsOf(events []corev1.Event, reasons ...string) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events),
		func(w corev1.Event) bool { return !slices.Contains(reasons, w.Reason) })
}

// lacksAllPods reports whether the job has no Workload, or was started and has no pods. One that asks for no pods, and
// says so itself, has no Workload for that reason.
func (s *Snapshot) lacksAllPods(job *Job) bool {
	return job.WaitsUnseen() && (job.PodsAsked > 0 || job.Message == noWorkloadYet) ||
		job.State == Starting && job.PodsAsked > 0 && len(s.Pods) == 0
}

// lastWarning returns the latest event, nil if there is none. Earlier ones may have been resolved.
func lastWarning(events []corev1.Event) *Warning {
	var last *Warning
	for i := range events {
		if at := lastObserved(&events[i]); last == nil || last.ReportedAt.Before(&at) {
			last = &Warning{Reason: events[i].Reason, Message: events[i].Message, ReportedAt: at}
		}
	}
	return last
}

// lastEviction returns why a waiting Workload was evicted last; nil if it was not, or by preemption: then the
// explanation of what is short already names the preemptors.
func lastEviction(w *kueue.Workload) *Warning {
	c := condition(w, kueue.WorkloadEvicted)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason == kueue.WorkloadEvictedByPreemption {
		return nil
	}
	return &Warning{Reason: c.Reason, Message: worded(c.Message), ReportedAt: c.LastTransitionTime}
}

// lastObserved returns when an event was last observed, from whichever field has it.
func lastObserved(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.CreationTimestamp
}

// NoteMistakes sets the reason and message of each job without any from the job's last warning.
func NoteMistakes(jobs []Job, warnings []corev1.Event) {
	for i := range jobs {
		if !jobs[i].SaysNothing() {
			continue
		}
		about := slices.DeleteFunc(slices.Clone(warnings),
			func(w corev1.Event) bool { return string(w.InvolvedObject.UID) != jobs[i].UID })
		if last := lastWarning(about); last != nil {
			jobs[i].Reason, jobs[i].Message = last.Reason, "no Workload yet: "+last.Message
		}
	}
}
