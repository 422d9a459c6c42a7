package workloads

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// Messages of the conditions that a job reports on its Workload.
const (
	podsReadyMessage      = "All pods reached readiness and the workload is running"
	podsRecoveringMessage = "At least one pod has failed, waiting for recovery"
	stageMessage          = "Waiting for the pods of %s, which may start now"
	// nextStageMessage begins the message about a stage if pods of an earlier one were ready before.
	nextStageMessage = "The pods of an earlier stage were ready. "
)

// report writes a job's progress into its Workload's status.
func report(w *kueue.Workload, progress jobs.Progress, backoff Backoff, now time.Time) {
	if workload.IsFinished(w) {
		return
	}
	if o := progress.Outcome; o != nil {
		Finish(w, o.Reason(kueue.WorkloadFinishedReasonSucceeded, kueue.WorkloadFinishedReasonFailed), o.Message, now)
		return
	}
	if progress.FailedToStart != "" {
		Finish(w, kueue.WorkloadFinishedReasonFailedToStart, progress.FailedToStart, now)
		return
	}
	if workload.IsEvicted(w) && workload.HoldsQuota(w) {
		if !progress.Active {
			workload.GiveBack(w, now)
			forgetReclaimed(w, progress.Reclaimable)
		}
		return
	}
	reclaim(w, progress.Reclaimable)
	for podSet, keeps := range workload.ShrinksTo(w) {
		if left, known := progress.Pods[string(podSet)]; known && left <= keeps {
			workload.FinishShrink(w, podSet)
		}
	}
	reportUnheld(w, progress.Active, now)
	reportObstacle(w, progress.Obstacle, now)
	switch {
	case !workload.IsAdmitted(w):
	case progress.Refused != "":
		release(w, cmp.Or(progress.RefusedWhat, jobs.PodsRefused)+": "+progress.Refused, backoff, now)
	default:
		reportReady(w, progress.Ready, progress.Stage, now)
	}
}

// Finish sets the condition Finished.
func Finish(w *kueue.Workload, reason, message string, now time.Time) {
	workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue, reason, message, now)
}

// reportUnheld reports whether the job may have pods without quota, so that what they use is counted.
func reportUnheld(w *kueue.Workload, active bool, now time.Time) {
	if active && !workload.HoldsQuota(w) {
		workload.SetCondition(w, muster.UnheldCondition, metav1.ConditionTrue, muster.UnheldReason, muster.UnheldMessage, now)
	} else {
		meta.RemoveStatusCondition(&w.Status.Conditions, muster.UnheldCondition)
	}
}

// reportObstacle reports that the API server refuses objects without which the admitted job gets no further.
func reportObstacle(w *kueue.Workload, obstacle string, now time.Time) {
	if obstacle != "" && workload.IsAdmitted(w) {
		workload.SetCondition(w, muster.RefusedCondition, metav1.ConditionTrue, muster.RefusedReason, obstacle, now)
	} else {
		meta.RemoveStatusCondition(&w.Status.Conditions, muster.RefusedCondition)
	}
}

// reportReady reports whether all pods that may exist by now are ready. That they are not ready yet after the admission
// follows from the missing condition, and is not written. That a later stage begins is written: its pods have the full
// time to become ready from then on.
func reportReady(w *kueue.Workload, isReady bool, stage *jobs.Stage, now time.Time) {
	ready := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady)
	set := func(status metav1.ConditionStatus, reason, message string) {
		workload.SetCondition(w, kueue.WorkloadPodsReady, status, reason, message, now)
	}
	switch {
	case isReady &&
		(ready == nil || ready.Reason == kueue.WorkloadWaitForStart && !strings.HasPrefix(ready.Message, nextStageMessage)):
		set(metav1.ConditionTrue, kueue.WorkloadStarted, podsReadyMessage)
	case isReady && ready.Status != metav1.ConditionTrue:
		set(metav1.ConditionTrue, kueue.WorkloadRecovered, podsReadyMessage)
	case isReady:
	case stage != nil && isNewStage(stage, ready):
		message := fmt.Sprintf(stageMessage, stage.Name)
		if ready != nil && (ready.Status == metav1.ConditionTrue || strings.HasPrefix(ready.Message, nextStageMessage)) {
			message = nextStageMessage + message
		}
		meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadPodsReady) // its time is that of this stage
		set(metav1.ConditionFalse, kueue.WorkloadWaitForStart, message)
	case ready != nil && ready.Status == metav1.ConditionTrue:
		set(metav1.ConditionFalse, kueue.WorkloadWaitForRecovery, podsRecoveringMessage)
	}
}

// stageSlack is by how much a stage must have begun after the last one to count as another one: the start of a stage is
// reported before its first Job says when it was started.
const stageSlack = 5 * time.Second

// isNewStage reports whether the stage began after the Workload last reported readiness in this condition, nil for
// never.
func isNewStage(s *jobs.Stage, ready *metav1.Condition) bool {
	switch {
	case ready == nil:
		return true
	case ready.Status == metav1.ConditionTrue:
		return s.Since.IsZero() || s.Since.After(ready.LastTransitionTime.Time)
	case ready.Reason == kueue.WorkloadWaitForRecovery:
		return false
	}
	return s.Since.After(ready.LastTransitionTime.Add(stageSlack))
}

// forgetReclaimed drops the reclaimed pods of a Workload without quota that its job needs again: without them, it could
// be admitted for too few pods before the next report.
func forgetReclaimed(w *kueue.Workload, reclaimable map[string]int32) {
	var left []kueue.ReclaimablePod
	for _, was := range w.Status.ReclaimablePods {
		if count := min(was.Count, reclaimable[string(was.Name)]); count > 0 {
			left = append(left, kueue.ReclaimablePod{Name: was.Name, Count: count})
		}
	}
	w.Status.ReclaimablePods = left
}

// reclaim reports the pods that need no quota any more. While quota is held, the counts only grow: what was reclaimed
// may have been given to others.
func reclaim(w *kueue.Workload, reclaimable map[string]int32) {
	before := map[kueue.PodSetReference]int32{}
	if workload.HoldsQuota(w) {
		for _, r := range w.Status.ReclaimablePods {
			before[r.Name] = r.Count
		}
	}
	var now []kueue.ReclaimablePod
	for _, ps := range w.Spec.PodSets {
		if count := max(before[ps.Name], min(reclaimable[string(ps.Name)], ps.Count)); count > 0 {
			now = append(now, kueue.ReclaimablePod{Name: ps.Name, Count: count})
		}
	}
	w.Status.ReclaimablePods = now
}
