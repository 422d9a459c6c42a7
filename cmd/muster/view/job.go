package view

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/internal/podproblem"
)

// State is the state of a job, in one word.
type State string

const (
	// Pending jobs wait for quota, or have not been reconciled yet. Reason and Message say for what they wait.
	Pending State = "Pending"
	// Admitted jobs have quota; another controller, whose objects are not read here, starts their pods.
	Admitted State = "Admitted"
	// Starting jobs have quota, or need none, but no ready pod yet.
	Starting State = "Starting"
	// Running jobs have at least one pod that is ready or has succeeded.
	Running State = "Running"
	// Evicting jobs are being evicted: they hold their quota until their pods are gone.
	Evicting State = "Evicting"
	// Suspended jobs wait for a user to resume or reactivate them.
	Suspended State = "Suspended"
	// Deleting jobs have a deletion timestamp, or are gone and their Workloads are not yet.
	Deleting State = "Deleting"
	// Completed jobs have succeeded.
	Completed State = "Completed"
	// Failed jobs have failed.
	Failed State = "Failed"
)

// HasOutcome reports whether the job has ended.
func (s State) HasOutcome() bool { return s == Completed || s == Failed }

// Job is one row of `muster jobs`: an object of a job API, or a Workload of a job whose kind is not read here.
type Job struct {
	Namespace string `json:"namespace"`
	// Kind and APIGroup name the object's API: JobSet of jobset.x-k8s.io. APIGroup is empty for core kinds.
	Kind     string `json:"kind"`
	APIGroup string `json:"apiGroup"`
	Name     string `json:"name"`

	// Queue is the queue that the job names, empty if it names none. ClusterQueue is the one that holds its quota,
	// empty before admission.
	Queue        string `json:"queue,omitempty"`
	ClusterQueue string `json:"clusterQueue,omitempty"`
	Priority     int32  `json:"priority"`

	State State `json:"state"`
	// Reason is a code of docs/reference/reasons.md or of the job's API, Message a sentence. Either may be empty.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// Preempted is, for a job that waits, its last preemption: while it waits, nothing else says why it was stopped.
	Preempted *Preemption `json:"preempted,omitempty"`

	// PodsReady counts pods that are ready or have succeeded, PodsAsked the pods that the job runs at the same time.
	PodsReady int32 `json:"podsReady"`
	PodsAsked int32 `json:"podsAsked"`
	// PodsLeast and PodsMost are the range of sizes of an elastic job. Absent for others.
	PodsLeast int32 `json:"podsLeast,omitempty"`
	PodsMost  int32 `json:"podsMost,omitempty"`
	// Requests is the sum over all its pods: the admitted amounts if there are any.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Restarts counts how often the whole job was restarted.
	Restarts int32 `json:"restarts,omitempty"`

	CreatedAt  metav1.Time  `json:"createdAt"`
	StartedAt  *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// WaitSeconds is the time spent without quota, RunSeconds with it, over all attempts. Absent if there was none.
	WaitSeconds *int64 `json:"waitSeconds,omitempty"`
	RunSeconds  *int64 `json:"runSeconds,omitempty"`

	// Limit is the time limit of a job that runs, LeftSeconds the time until then, 0 from then on. Absent without a limit.
	Limit       *TimeLimit `json:"limit,omitempty"`
	LeftSeconds *int64     `json:"leftSeconds,omitempty"`
	// ExpectedEnd is when a job that reports its progress expects to end.
	ExpectedEnd *metav1.Time `json:"expectedEnd,omitempty"`
	// ProgressPercentage is about how much of it is done now, from 0 to 99: what it reported last, and as much more as
	// belongs to the time since then.
	ProgressPercentage *int64 `json:"progressPercentage,omitempty"`

	// Workload is the name of the Workload that queues for the job.
	Workload string `json:"workload,omitempty"`

	// UID and Labels are the object's, for selecting.
	UID    string            `json:"-"`
	Labels map[string]string `json:"-"`
	// Makers are the UIDs of the Jobs and VCJobs that create the pods of the object, which does not do so itself.
	Makers []types.UID `json:"-"`
}

// WaitsUnseen reports whether the job waits and has no Workload.
func (j *Job) WaitsUnseen() bool { return j.State == Pending && j.Workload == "" }

// SaysNothing reports whether the job has no Workload, and nothing that was read so far says why.
func (j *Job) SaysNothing() bool { return j.WaitsUnseen() && j.Message == noWorkloadYet }

// Title returns the job's name as users type it: jobset/pytorch.
func (j *Job) Title() string { return strings.ToLower(j.Kind) + "/" + j.Name }

// FullTitle returns the title with the namespace: ml/jobset/pytorch.
func (j *Job) FullTitle() string { return j.Namespace + "/" + j.Title() }

// ResourceName returns what `-o name` prints and kubectl accepts: jobset.jobset.x-k8s.io/pytorch.
func (j *Job) ResourceName() string {
	if j.APIGroup == "" {
		return j.Title()
	}
	return strings.ToLower(j.Kind) + "." + j.APIGroup + "/" + j.Name
}

// PodLabel returns the key of the label whose value, on the job's pods, is the job's name; "" for a kind that has none.
func (j *Job) PodLabel() string { return podproblem.Label(j.APIGroup, j.Kind) }

// Why returns reason and message as one phrase, empty if there is neither.
func (j *Job) Why() string {
	switch {
	case j.Reason == "":
		return j.Message
	case j.Message == "":
		return j.Reason
	}
	return j.Reason + ": " + j.Message
}

// OutputVersion is the apiVersion of `-o json` and `-o yaml`.
const OutputVersion = "cli.muster.dev/v1"

// List is the output of a command that lists jobs or queues with `-o json`.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	Items           []T `json:"items"`
}

// JobList is the output of `muster jobs -o json`.
type JobList = List[Job]

// NewJobList returns a list of jobs for printing.
func NewJobList(jobs []Job) *JobList { return newList("JobList", jobs) }

func newList[T any](kind string, items []T) *List[T] {
	if items == nil {
		items = []T{} // an empty list, never null
	}
	return &List[T]{TypeMeta: metav1.TypeMeta{APIVersion: OutputVersion, Kind: kind}, Items: items}
}

// DeepCopyObject makes List a runtime.Object for kubectl's printers. The copy is shallow: printers only read.
func (l *List[T]) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}

// noWorkloadYet is the Message of a job that has no Workload, in lists, which do not read events.
const noWorkloadYet = "no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"

// TimeLimit is how long a job that runs may run.
type TimeLimit struct {
	Seconds int64 `json:"seconds"`
	// Source is the field or the annotation that sets the limit, and the object that has it.
	Source string `json:"source"`
	// EndsAt is when the job reaches the limit. Pauses says that it is paused then, and Own that its own API or the
	// kubelets stop it, about then; another job is deactivated.
	EndsAt metav1.Time `json:"endsAt"`
	Pauses bool        `json:"pauses,omitempty"`
	Own    bool        `json:"own,omitempty"`
}
