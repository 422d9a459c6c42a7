package view

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// State is where a job stands, in one word.
type State string

const (
	// Pending jobs wait for quota, or for somebody to look at them. Why says for what.
	Pending State = "Pending"
	// Admitted jobs have their quota; another controller, not seen here, starts their pods.
	Admitted State = "Admitted"
	// Starting jobs have their quota, or need none, and no pod that is ready yet.
	Starting State = "Starting"
	// Running jobs have at least one pod that is ready or has succeeded.
	Running State = "Running"
	// Evicting jobs must give their quota back and still hold it until their pods are gone.
	Evicting State = "Evicting"
	// Suspended jobs wait for a person to resume or reactivate them.
	Suspended State = "Suspended"
	// Deleting jobs have been deleted and are not gone yet.
	Deleting State = "Deleting"
	// Completed jobs have ended well.
	Completed State = "Completed"
	// Failed jobs have ended otherwise.
	Failed State = "Failed"
)

// Over tells whether nothing more will happen to a job in this state.
func (s State) Over() bool { return s == Completed || s == Failed }

// Job is one line of `muster jobs`: an object of a job API, or a Workload that stands for a job not seen here.
type Job struct {
	Namespace string `json:"namespace"`
	// Kind and APIGroup name the object's API: JobSet of jobset.x-k8s.io. The group of core kinds is empty.
	Kind     string `json:"kind"`
	APIGroup string `json:"apiGroup"`
	Name     string `json:"name"`

	// Queue is the queue that the job names, ClusterQueue the one that holds its quota. Empty without a queue and
	// before admission.
	Queue        string `json:"queue,omitempty"`
	ClusterQueue string `json:"clusterQueue,omitempty"`
	Priority     int32  `json:"priority"`

	State State `json:"state"`
	// Reason is a code of docs/reasons.md or of the job's API, Message a sentence. Either may be empty.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// PodsReady counts pods that are ready or have succeeded, PodsAsked those that the job runs at once.
	PodsReady int32 `json:"podsReady"`
	PodsAsked int32 `json:"podsAsked"`
	// PodsLeast and PodsMost are between how many pods an elastic job runs. Absent for others.
	PodsLeast int32 `json:"podsLeast,omitempty"`
	PodsMost  int32 `json:"podsMost,omitempty"`
	// Requests is what all its pods ask together: admitted amounts where there are any.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Restarts counts how often the whole job was started anew.
	Restarts int32 `json:"restarts,omitempty"`

	CreatedAt  metav1.Time  `json:"createdAt"`
	StartedAt  *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// WaitSeconds is the time spent without quota, RunSeconds with it, over all attempts. Absent where there is none.
	WaitSeconds *int64 `json:"waitSeconds,omitempty"`
	RunSeconds  *int64 `json:"runSeconds,omitempty"`

	// Workload is the name of the object that queues for the job.
	Workload string `json:"workload,omitempty"`

	// UID is the object's, Labels are its labels: for selecting, not for printing.
	UID    string            `json:"-"`
	Labels map[string]string `json:"-"`
}

// WaitsUnseen reports whether the job waits, and nothing in the cluster queues for it.
func (j *Job) WaitsUnseen() bool { return j.State == Pending && j.Workload == "" }

// Title is the job's name as people type it: jobset/pytorch.
func (j *Job) Title() string { return strings.ToLower(j.Kind) + "/" + j.Name }

// FullTitle is unambiguous in the cluster: ml/jobset/pytorch.
func (j *Job) FullTitle() string { return j.Namespace + "/" + j.Title() }

// ResourceName is what `-o name` prints and kubectl takes: jobset.jobset.x-k8s.io/pytorch.
func (j *Job) ResourceName() string {
	if j.APIGroup == "" {
		return j.Title()
	}
	return strings.ToLower(j.Kind) + "." + j.APIGroup + "/" + j.Name
}

// PodLabel is the label that the pods of the job bear, with its name as value; "" for a kind whose pods no label tells.
func (j *Job) PodLabel() string {
	switch j.Kind {
	case "JobSet":
		return jobset.JobSetNameKey
	case "GenericJob":
		return tensorstack.GenericJobLabel
	case "VCJob", "LatticeJob":
		return volcano.JobNameKey
	case "TrainingJob":
		return breezeml.JobNameLabel
	case "Job":
		return batchv1.JobNameLabel
	}
	return ""
}

// Why is reason and message as one phrase, empty where there is nothing to say.
func (j *Job) Why() string {
	switch {
	case j.Reason == "":
		return j.Message
	case j.Message == "":
		return j.Reason
	}
	return j.Reason + ": " + j.Message
}

// OutputVersion is the API version that `-o json` and `-o yaml` carry.
const OutputVersion = "cli.muster.dev/v1"

// JobList is what `muster jobs -o json` prints.
type JobList struct {
	metav1.TypeMeta `json:",inline"`
	Items           []Job `json:"items"`
}

// NewJobList wraps jobs for printing.
func NewJobList(jobs []Job) *JobList {
	if jobs == nil {
		jobs = []Job{} // an empty list, never null
	}
	return &JobList{TypeMeta: metav1.TypeMeta{APIVersion: OutputVersion, Kind: "JobList"}, Items: jobs}
}

// DeepCopyObject makes JobList printable by the printers of kubectl, which only read: the items are shared.
func (l *JobList) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}
