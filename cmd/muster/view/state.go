package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// slowStart is after how long without a ready pod a job that may run is said to have none.
const slowStart = time.Minute

// keepsQuota is the message of a job that is being deleted and holds quota.
const keepsQuota = "it keeps its quota until its pods have ended"

// reasonAdmissionChecks is the Reason of a job that has reserved quota and waits for admission checks. The Workload API
// itself has several reasons for that, on condition Admitted.
const reasonAdmissionChecks = "AdmissionChecks"

// describe returns the Job of a subject as of now.
func (s *subject) describe(now time.Time) Job {
	job := Job{
		Namespace: s.meta.Namespace, Kind: s.kind, APIGroup: s.group, Name: s.meta.Name,
		Queue: s.queue, PodsAsked: s.pods.asked, Requests: s.requests, Restarts: s.restarts,
		CreatedAt: s.meta.CreationTimestamp, StartedAt: s.startedAt,
		UID: string(s.meta.UID), Labels: s.meta.Labels, Makers: s.makers,
	}
	if s.workload != nil {
		s.noteSizes()
		s.addWorkload(&job)
		s.noteLarger()
		s.notePartial()
		s.noteResized(now)
	}
	job.State, job.Reason, job.Message = s.status(now)
	if s.workload != nil && (job.State == Pending || job.State == Suspended) {
		job.Preempted = s.preemption()
	}
	if job.State == Starting && job.StartedAt != nil && now.Sub(job.StartedAt.Time) >= slowStart {
		job.Message = join(job.Message, noneReady)
	}
	if s.outcome != nil {
		job.FinishedAt = s.outcome.at.DeepCopy()
	}
	job.PodsReady = s.pods.up()
	if s.sizes.least < s.sizes.most {
		job.PodsLeast, job.PodsMost = s.sizes.least, s.sizes.most
	}
	job.WaitSeconds, job.RunSeconds = s.durations(&job, now)
	return job
}

// addWorkload takes from the Workload what it knows better than the job: the queue that it is actually in, the priority
// and, once admitted, the ClusterQueue, the number of pods and the amounts.
func (s *subject) addWorkload(job *Job) {
	w := s.workload
	job.Workload = w.Name
	if w.Spec.QueueName != "" {
		job.Queue = string(w.Spec.QueueName)
	}
	if w.Spec.Priority != nil {
		job.Priority = *w.Spec.Priority
	}
	if s.outcome == nil {
		s.outcome = workloadOutcome(w)
	}
	if c := workload.IfTrue(w, muster.RefusedCondition); c != nil && s.blocked == "" {
		s.blocked = c.Message
	}
	if s.foreign && workload.IsTrue(w, kueue.WorkloadPodsReady) {
		s.pods.ready = s.pods.asked
	}
	job.StartedAt = admittedAt(w)
	if w.Status.Admission == nil {
		return
	}
	job.ClusterQueue = string(w.Status.Admission.ClusterQueue)
	admitted, pods := admittedAmounts(w)
	if len(admitted) > 0 {
		job.Requests = admitted
	}
	switch s.given = pods; {
	case s.sizeFromSpec && s.sizes == sizes{}: // shrunk since, or enlarged: the enlargement waits
		s.pods.asked = min(s.pods.asked, pods)
	case pods > 0:
		s.pods.asked = pods
	}
	job.PodsAsked = s.pods.asked
}

// noteLarger adds to s.partial the parts that were enlarged beyond what they were queued with: the additional pods
// wait.
func (s *subject) noteLarger() {
	if s.workload.Status.Admission == nil {
		return
	}
	var larger []string
	for i := range s.parts {
		part := &s.parts[i]
		queued, given := sizeOf(s.workload, part.Name)
		switch {
		case part.Pods <= queued:
		case len(s.parts) == 1:
			larger = append(larger, fmt.Sprintf("asks for %d pods now, and was admitted for %d", part.Pods, given))
		default:
			larger = append(larger,
				fmt.Sprintf("asks for %d pods of %s now, and was admitted for %d", part.Pods, part.Name, given))
		}
	}
	if len(larger) > 0 {
		s.partial = join(s.partial,
			strings.Join(larger, "; ")+": the rest waits until other pods have ended, or the job is admitted again")
	}
}

// sizeOf returns with how many pods the named pod set was queued, and with how many it was admitted; 0 if there is
// none.
func sizeOf(w *kueue.Workload, name kueue.PodSetReference) (queued, given int32) {
	for i := range w.Spec.PodSets {
		if podSet := &w.Spec.PodSets[i]; podSet.Name == name {
			queued = podSet.Count
		}
	}
	for i := range w.Status.Admission.PodSetAssignments {
		if assignment := &w.Status.Admission.PodSetAssignments[i]; assignment.Name == name {
			_, given = workload.PodsHoldingQuota(w, assignment)
		}
	}
	return queued, given
}

// notePartial adds to s.partial that the job was admitted with fewer pods than it wants, not counting reclaimed ones.
func (s *subject) notePartial() {
	given, wanted := s.given, int32(0)
	for i := range s.workload.Spec.PodSets {
		podSet := &s.workload.Spec.PodSets[i]
		wanted += podSet.Count - workload.Reclaimed(s.workload, podSet)
	}
	if s.workload.Status.Admission != nil && given < wanted && s.sizes.least == s.sizes.most {
		partial := fmt.Sprintf("admitted with %d of %d pods", given, wanted)
		if s.keepsSize {
			partial += ", which slices or a group keep from growing"
		}
		s.partial = join(partial, s.partial)
	}
}

// status returns the state of the job and why. The order of the cases matters: an end is final, a job being deleted no
// longer runs, and the Workload takes precedence over the job's own suspend field.
func (s *subject) status(now time.Time) (state State, reason, message string) {
	switch {
	case s.outcome != nil:
		return s.outcome.state, s.outcome.reason, s.outcome.message
	case s.meta.DeletionTimestamp != nil, s.deleted:
		if s.workload != nil && s.workload.Status.Admission != nil {
			return Deleting, "", keepsQuota
		}
		return Deleting, "", ""
	case s.held != "":
		return Suspended, "", s.held
	case s.workload != nil:
		return s.queuedStatus(now)
	case s.meta.Labels[kueue.PrebuiltWorkloadLabel] != "":
		return Pending, "", fmt.Sprintf("waits for the Workload %s, which its label %s names: it is not there, "+
			"belongs to another job, or asks for other pods",
			s.meta.Labels[kueue.PrebuiltWorkloadLabel], kueue.PrebuiltWorkloadLabel)
	case s.suspended && s.queue == "":
		return Suspended, "", "spec.suspend is true"
	case s.blocked != "" && s.pods.up() == 0:
		return Pending, "", s.blocked
	case s.queue != "" && s.pods.active == 0 && s.pods.up() == 0:
		return Pending, "", noWorkloadYet
	}
	return s.runningStatus()
}

func (s *subject) queuedStatus(now time.Time) (state State, reason, message string) {
	w := s.workload
	reserved, evicted := condition(w, kueue.WorkloadQuotaReserved), condition(w, kueue.WorkloadEvicted)
	holds := reserved != nil && reserved.Status == metav1.ConditionTrue
	isEvicted := evicted != nil && evicted.Status == metav1.ConditionTrue
	switch {
	case isEvicted && holds:
		message, forGood, _ := strings.Cut(worded(s.withTitles(evicted.Message)), workload.ForGood)
		if target := workload.IfTrue(w, kueue.WorkloadDeactivationTarget); target != nil && forGood == "" {
			forGood = target.Message // spec.active is set to false next
		}
		if forGood != "" {
			// It comes first: a list shows only the beginning, and a check may have said much.
			message = strings.TrimPrefix(workload.ForGood, "; ") + forGood + "; it is being evicted for: " + message
		}
		return Evicting, evicted.Reason, message
	case w.Spec.Active != nil && !*w.Spec.Active && holds:
		state, _, _ := s.runningStatus()
		return state, kueue.WorkloadDeactivated, "spec.active of its Workload is false, but it holds its quota still"
	case w.Spec.Active != nil && !*w.Spec.Active:
		reason, message := kueue.WorkloadDeactivated, "spec.active of its Workload is false"
		if isEvicted && strings.HasPrefix(evicted.Reason, kueue.WorkloadDeactivated) {
			reason, message = evicted.Reason, evicted.Message
		}
		return Suspended, reason, message
	case !holds:
		reason, message := "", "waits for its first decision"
		if reserved != nil {
			reason, message = reserved.Reason, reserved.Message
		}
		if reason == kueue.WorkloadPendingEvaluation && isEvicted {
			message = "was evicted: " + worded(s.withTitles(evicted.Message))
		}
		return Pending, reason, message + untilRequeue(w, now)
	case !workload.IsAdmitted(w):
		return Pending, reasonAdmissionChecks, "quota reserved, waits for admission checks" + pendingChecks(w)
	case s.suspended && s.pods.active == 0 && s.pods.up() == 0 && s.startedAt != nil:
		return Suspended, "", "spec.suspend is true"
	}
	return s.runningStatus()
}

// runningStatus returns the state of a job that may run: it has quota or needs none.
func (s *subject) runningStatus() (state State, reason, message string) {
	message = join(s.blocked, s.partial)
	if s.restarts > 0 {
		message = join(message, "restarted "+times(s.restarts))
	}
	switch {
	case s.foreign && workload.IsOrphaned(s.workload):
		return Running, "", join(message, "its job was deleted without its pods, which keep its quota until they end")
	case s.pods.up() > 0:
		return Running, "", message
	case s.stopped != "" && s.given > 0:
		return Suspended, "", s.stopped + fmt.Sprintf(", and it keeps its quota for %d", s.given)
	case s.stopped != "":
		return Suspended, "", s.stopped
	case s.foreign && len(s.workload.OwnerReferences) == 0:
		return Admitted, "", join(message, "has no owner: its own controller would start its pods now")
	case s.foreign:
		return Admitted, "", message
	}
	return Starting, "", message
}

// timedOut matches the words of the Workload API for pods that were not ready in time.
var timedOut = regexp.MustCompile(`^Exceeded the PodsReady timeout [^/:\s]+/[^/:\s]+`)

// worded returns the message of an eviction in plain words.
func worded(message string) string {
	return timedOut.ReplaceAllLiteralString(message, "its pods were not ready in time")
}

func untilRequeue(w *kueue.Workload, now time.Time) string {
	state := w.Status.RequeueState
	if state == nil || state.RequeueAt == nil || !state.RequeueAt.After(now) {
		return ""
	}
	return fmt.Sprintf("; queued again in %s", Duration(state.RequeueAt.Sub(now)))
}

func pendingChecks(w *kueue.Workload) string {
	var names []string
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		if check.State != kueue.CheckStateReady {
			names = append(names, string(check.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " " + strings.Join(names, ", ")
}

// durations returns the seconds without and with quota. The time that an evicted job ran before its present admission
// is recorded in the Workload and counts as run, not as wait.
func (s *subject) durations(job *Job, now time.Time) (wait, run *int64) {
	var past time.Duration
	if s.workload != nil && s.workload.Status.AccumulatedPastExexcutionTimeSeconds != nil {
		past = time.Duration(*s.workload.Status.AccumulatedPastExexcutionTimeSeconds) * time.Second
	}
	end := now
	if job.FinishedAt != nil {
		end = job.FinishedAt.Time
	}
	if job.StartedAt != nil {
		return seconds(job.StartedAt.Sub(job.CreatedAt.Time) - past), seconds(end.Sub(job.StartedAt.Time) + past)
	}
	if job.State == Suspended || job.State == Deleting {
		return nil, nil
	}
	wait = seconds(end.Sub(job.CreatedAt.Time) - past)
	if past > 0 {
		run = seconds(past)
	}
	return wait, run
}

// seconds converts d to seconds, at least 0: the clocks of machines may differ.
func seconds(d time.Duration) *int64 {
	n := max(0, int64(d/time.Second))
	return &n
}

func admittedAt(w *kueue.Workload) *metav1.Time {
	if admitted := workload.IfTrue(w, kueue.WorkloadAdmitted); admitted != nil {
		return admitted.LastTransitionTime.DeepCopy()
	}
	return nil
}

// workloadOutcome returns how the job has ended according to its Workload, nil if the Workload has not finished.
func workloadOutcome(w *kueue.Workload) *outcome {
	finished := condition(w, kueue.WorkloadFinished)
	switch {
	case finished == nil || finished.Status != metav1.ConditionTrue:
		return nil
	case finished.Reason == kueue.WorkloadFinishedReasonSucceeded:
		return &outcome{state: Completed, at: finished.LastTransitionTime}
	}
	return &outcome{state: Failed, reason: finished.Reason, message: finished.Message, at: finished.LastTransitionTime}
}
