package workloads

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// A job follows one Workload. Which one that is depends on a label, which users can set, change and remove at any time.
// While a Workload holds quota for the job, the job follows that Workload, so that its pods run, stop and end with the
// quota that they have; the label counts again once the quota is given back. All other Workloads of the job are given
// back.

// workloadReplaced is the reason of the event on a job that follows another Workload than before.
const workloadReplaced = "WorkloadReplaced"

// workloadDisowned is the reason of the event on a job whose Workload has lost its owner reference to the job.
const workloadDisowned = "WorkloadDisowned"

// Job is a job as far as its Workload depends on it: the object, and what holds for all jobs of its API.
type Job struct {
	client.Object
	// Kind is the kind of the job.
	Kind schema.GroupVersionKind
	// Rule says what happens to a job that names no queue. Pauses, Delegates and RequeuesChanged are the options of its
	// API.
	Rule                               jobs.QueueRule
	Pauses, Delegates, RequeuesChanged bool
	// Backoff applies to jobs whose pods are refused.
	Backoff Backoff
}

// prebuilt returns the name of the Workload that someone else made for the job and that the job names, "" if there is
// none. In a job that delegates, the label is meant for the jobs that it creates.
func (j Job) prebuilt() string {
	if j.Delegates {
		return ""
	}
	return jobs.PrebuiltName(j.Object)
}

// WantedNames returns the names that the Workload may have which the job is to follow once it holds no quota: the one
// that the job names, or else the generated ones, the newest first. An earlier version made longer names.
func (j Job) WantedNames() []string {
	if named := j.prebuilt(); named != "" {
		return []string{named}
	}
	return Names(j.Kind, j.GetName(), j.GetUID())
}

// wants reports whether the name is that of the Workload that the job is to follow once it holds no quota.
func (j Job) wants(name string) bool { return slices.Contains(j.WantedNames(), name) }

// isGenerated reports whether the name is one that is generated for the job's Workload.
func (j Job) isGenerated(name string) bool {
	return IsName(name, j.Kind, j.GetName(), j.GetUID())
}

// Controls reports whether the Workload is controlled by the job. The kind of the owner is compared as well, because
// the admission policies decide by that kind who may set what on a Workload.
func (j Job) Controls(w *kueue.Workload) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	return jobs.RefersTo(owner, j.Kind.GroupKind()) && owner.UID == j.GetUID()
}

// IsDisowned reports whether the Workload, of the name that is generated for the job, has no controller any more:
// someone has removed the owner reference. The job does not take it back: by now it may be finished for having no job,
// or ask for less than the job, which only the operator may change in the Workload of a job.
func (j Job) IsDisowned(w *kueue.Workload) bool {
	return metav1.GetControllerOfNoCopy(w) == nil && j.isGenerated(w.Name) && j.prebuilt() != w.Name
}

// MayFollow reports whether the job may follow the Workload, which has a name that the job wants: its own, one that it
// names, or one that was its own.
func (j Job) MayFollow(w *kueue.Workload) bool {
	return j.prebuilt() != "" || j.Controls(w) || j.IsDisowned(w)
}

// Follow returns which of the Workloads that the job controls holds quota for it, nil if none does: of several, the one
// that the job wants.
func (j Job) Follow(own []*kueue.Workload) (followed *kueue.Workload) {
	for _, w := range own {
		if workload.HoldsQuota(w) && !workload.IsFinished(w) && (followed == nil || j.wants(w.Name)) {
			followed = w
		}
	}
	return followed
}

// followsPrebuilt reports whether the Workload that the job follows, or is to follow if that is nil, was made by
// someone else. Then the pod sets of that Workload count, not the pod sets of the job.
func (j Job) followsPrebuilt(followed *kueue.Workload) bool {
	if followed == nil {
		return j.prebuilt() != ""
	}
	return !j.isGenerated(followed.Name)
}

// GiveBack returns writes that delete the Workloads that the job does not follow although it controls them, and the
// disowned ones. Quota that they hold is returned once the job has no pods, since it cannot be known which of the pods
// it was for.
func (j Job) GiveBack(others []*kueue.Workload, followed *kueue.Workload,
	progress jobs.Progress) (writes []write.Write) {
	follows := j.WantedNames()[0]
	if followed != nil {
		follows = followed.Name
	}
	for _, w := range others {
		disowned := j.IsDisowned(w)
		if workload.IsFinished(w) && !disowned { // it is kept as a record
			if free := WithoutFinalizer(w, progress.Active); free != nil {
				writes = append(writes, write.Change(w, free))
			}
			continue
		}
		for _, change := range pausedWrites(w, jobs.Progress{Active: progress.Active && workload.HoldsQuota(w)}) {
			switch {
			case change.Verb() == write.VerbDelete && disowned:
				change = change.WithEvent(write.Warning(workloadDisowned, fmt.Sprintf(
					"Workload %s is deleted: its owner reference to the job was removed, so its quota is not the job's any more. The job stops and is queued again", w.Name)))
			case change.Verb() == write.VerbDelete:
				change = change.WithEvent(write.Normal(workloadReplaced,
					fmt.Sprintf("Workload %s is deleted: the job follows Workload %s now", w.Name, follows)))
			}
			writes = append(writes, change)
		}
	}
	return writes
}

// Awaits reports whether one of the Workloads, which the job does not follow, may still get or hold quota, or has the
// name that the job's next one will have.
func (j Job) Awaits(others []*kueue.Workload) bool {
	return slices.ContainsFunc(others, func(w *kueue.Workload) bool { return !workload.IsFinished(w) || j.IsDisowned(w) })
}
