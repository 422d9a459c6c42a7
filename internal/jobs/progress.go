package jobs

import "time"

// Progress is how far a job has come, as far as its queue needs to know.
type Progress struct {
	// Active says that pods of the job may still use its quota.
	Active bool
	// Ready says that all pods that may exist by now are ready or have ended for good, or that readiness is not awaited
	// any more. Pods of a stage that still waits for another one are not missing.
	Ready bool
	// Stage is the last stage that may start and is not ready, nil if only pods of the first one are not ready, or if the
	// job has no stages.
	Stage *Stage
	// Pods counts, by elastic pod set, the pods that may still use quota, terminating ones included. The quota that a
	// shrinking pod set gives up becomes free once it has no more pods than it was granted.
	Pods map[string]int32
	// Needed counts, by elastic pod set, the pods that run or are still to run, if the job knows: it wants no more.
	Needed map[string]int32
	// Reclaimable counts, by pod set, the pods that need no quota any more in this admission: they have ended and will not
	// be run again, or the job has fewer pods by now.
	Reclaimable map[string]int32
	// Outcome is set once the job has ended.
	Outcome *Outcome
	// OutcomePending says that the job has ended, but keeps quota for pods that still run: Outcome is set when these pods
	// are gone. RunOn counts, by elastic pod set, the pods that are not being stopped: the pod set wants quota for no
	// more.
	OutcomePending bool
	RunOn          map[string]int32
	// Restarts counts how often the job, or one of its parts, was restarted after a failure, as far as its status says.
	Restarts int64
	// Missing counts the pods that should exist and were not created. Refusing says that the API server refused some of
	// them, if only once.
	Missing  int32
	Refusing bool
	// Refused says why the API server refuses objects that the job cannot go on without, "" if it does not. RefusedWhat
	// says what cannot be done; "" means that pods cannot be created.
	Refused, RefusedWhat string
	// Obstacle says what the API server refuses, though the job does not give up for that yet; "" if it refuses nothing.
	Obstacle string
	// FailedToStart says why the job can never start with the quota and places that it was given, "" if it can.
	FailedToStart string
	// Requeue says that the job has no pods and now asks for other ones than its Workload does, so that the Workload
	// has to be replaced.
	Requeue bool
}

// Stage is a part of a job that starts after other parts, such as a replicated job with dependsOn. Its pods have the
// time that pods may take to become ready from the start of the stage on.
type Stage struct {
	Name string
	// Since is when its first pods, or their Jobs, were started. Zero means that this is not known yet.
	Since time.Time
}

// LastStage returns the stage that started last, or a, of two that may be nil.
func LastStage(a, b *Stage) *Stage {
	switch {
	case a == nil:
		return b
	case b == nil || !b.Since.IsZero() && !b.Since.After(a.Since):
		return a
	}
	return b
}

// Outcome is how a job ended.
type Outcome struct {
	Succeeded bool
	Message   string
}

// Reason returns the first of the reasons if the job has succeeded, else the second.
func (o *Outcome) Reason(succeeded, failed string) string {
	if o.Succeeded {
		return succeeded
	}
	return failed
}
