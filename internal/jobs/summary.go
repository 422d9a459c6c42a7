package jobs

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// Summary is what the spec and status of a job say for lists of jobs, without its Workload. Each API has a function
// that returns it.
type Summary struct {
	// Queue is the queue that the job names by the queue label or otherwise, "" if it names none.
	Queue string
	// Asked counts the pods that the job runs at a time, Active the pods that it has, Ready the ready ones among these,
	// and Succeeded the pods that have succeeded.
	Asked, Active, Ready, Succeeded int32
	// Requests is the sum over the pods that are asked for.
	Requests corev1.ResourceList
	// Parts are the parts of a job that may be enlarged after admission, and the pods that each asks for.
	Parts []SummaryPart
	// SizeFromSpec is set if the spec says how many pods the job runs at present, limited by the quota that the job was
	// admitted with.
	SizeFromSpec bool
	// Least and Most are between which sizes the job runs, both 0 if only its Workload says so.
	Least, Most int32
	// Restarts counts how often the whole job was restarted, PartRestarts how often its parts were. PartName names the
	// parts in the plural.
	Restarts, PartRestarts int32
	PartName               string
	// StartedAt is when the job was started, nil if only its Workload says so.
	StartedAt *metav1.Time
	// Outcome is set if the job has ended.
	Outcome *SummaryOutcome
	// Suspended says that the job's own suspend field is set, by its user or its queue.
	Suspended bool
	// Held says how a user has suspended the job, Blocked what keeps it from being queued, Stopped why it has no pods
	// though it may run, and Partial what a user should know of the job while it runs. Each is "" if there is nothing to
	// say.
	Held, Blocked, Stopped, Partial string
	// Manager says that another controller runs the job, "" if none does.
	Manager string
}

// SummaryPart is a part of a job: its pod set, and the number of pods in its spec.
type SummaryPart struct {
	Name kueue.PodSetReference
	Pods int32
}

// SummaryOutcome is how a job has ended.
type SummaryOutcome struct {
	Succeeded       bool
	Reason, Message string
	At              metav1.Time
}

// Ask adds so many pods of the template.
func (s *Summary) Ask(pods int32, template *corev1.PodTemplateSpec) {
	if s.Requests == nil {
		s.Requests = corev1.ResourceList{}
	}
	s.Asked += pods
	podspec.AddTimes(s.Requests, podspec.Requests(template.Spec), pods)
}

// CountPodsOf adds the pods that a batch Job has.
func (s *Summary) CountPodsOf(job *batchv1.Job) {
	s.Active += job.Status.Active
	s.Succeeded += job.Status.Succeeded
	s.Ready += ptr.Deref(job.Status.Ready, 0)
	if started := job.Status.StartTime; started != nil && (s.StartedAt == nil || started.Before(s.StartedAt)) {
		s.StartedAt = started
	}
}

// End says that the job has ended, and, if it has failed, why.
func (s *Summary) End(succeeded bool, reason, message string, at metav1.Time) {
	s.Outcome = &SummaryOutcome{Succeeded: succeeded, At: at}
	if !succeeded {
		s.Outcome.Reason, s.Outcome.Message = reason, message
	}
}

// NoteManager notes that the job names another controller than ours to run it, if it does.
func (s *Summary) NoteManager(named *string, ours string) {
	if named != nil && *named != ours {
		s.Manager = fmt.Sprintf("managedBy is %s: that controller runs the job, and Muster leaves it alone", *named)
	}
}
