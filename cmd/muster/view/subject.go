package view

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/vcjob"
	"github.com/musterhq/muster/internal/podspec"
)

// subject is what is known of one job before it becomes a Job.
type subject struct {
	meta        *metav1.ObjectMeta
	kind, group string
	workload    *kueue.Workload
	queue       string
	pods        podCounts
	// sizes is the range of sizes of an elastic job, the zero value for other jobs.
	sizes    sizes
	requests corev1.ResourceList
	restarts int32
	// suspended is the job's own suspend field: whether a user or its queue set it follows from the Workload.
	suspended bool
	// blocked says what keeps the job from being queued, "" if nothing does.
	blocked string
	// held says how a user suspended the job, "" if nobody did.
	held string
	// stopped says why the job, though allowed to run, has no pods: a user set it so. "" if it runs pods.
	stopped string
	// sizeFromSpec is set if the job's own spec says how many pods it runs at present, limited by what it was admitted
	// with.
	sizeFromSpec bool
	// parts are the parts of a job that may be enlarged after admission; none for other jobs.
	parts []jobs.SummaryPart
	// given is how many pods the job was admitted with, 0 if it was not.
	given int32
	// outcome is how the job has ended, nil if it has not.
	outcome *outcome
	// startedAt is when its first pods were created, used if no Workload knows better.
	startedAt *metav1.Time
	// partial says that fewer pods were admitted than wanted, or that pods were restarted; "" if neither.
	partial string
	// keepsSize says that the queue does not resize the admitted elastic pod set.
	keepsSize bool
	// makers is Makers of the Job.
	makers []types.UID
	// titles are the full titles of all jobs, keyed by the UIDs of the jobs and of their Workloads.
	titles map[types.UID]string
	// foreign jobs are started by a controller whose objects are not read here.
	foreign bool
	// deleted is set if the job is known to be gone, though its Workload is not.
	deleted bool
}

// sizes are the minimum and the maximum number of pods of an elastic job.
type sizes struct{ least, most int32 }

type podCounts struct{ active, ready, succeeded, asked int32 }

// up counts the pods that are ready or have succeeded, at most p.asked: a Job may have more completions than parallel
// pods.
func (p podCounts) up() int32 { return min(p.ready+p.succeeded, p.asked) }

// outcome is how a job has ended.
type outcome struct {
	state           State
	reason, message string
	at              metav1.Time
}

// newSubject returns the subject of a job, without its kind and group.
func newSubject(meta *metav1.ObjectMeta, sum jobs.Summary, owned owners) *subject {
	s := &subject{
		meta: meta, workload: owned.workloads[meta.UID], queue: sum.Queue, requests: sum.Requests,
		pods:  podCounts{asked: sum.Asked, active: sum.Active, ready: sum.Ready, succeeded: sum.Succeeded},
		sizes: sizes{sum.Least, sum.Most}, sizeFromSpec: sum.SizeFromSpec, parts: sum.Parts,
		restarts: sum.Restarts, partial: sum.Partial, startedAt: sum.StartedAt, outcome: outcomeOf(sum.Outcome),
		suspended: sum.Suspended, held: sum.Held, blocked: sum.Blocked, stopped: sum.Stopped,
	}
	if sum.PartRestarts > 0 {
		s.partial = join(s.partial, sum.PartName+" restarted "+times(sum.PartRestarts))
	}
	if s.workload == nil && s.pods.active == 0 && s.blocked == "" {
		s.blocked = sum.Manager // Muster makes no Workload for a job of another controller
	}
	return s
}

func outcomeOf(sum *jobs.SummaryOutcome) *outcome {
	switch {
	case sum == nil:
		return nil
	case sum.Succeeded:
		return &outcome{state: Completed, at: sum.At}
	}
	return &outcome{state: Failed, reason: sum.Reason, message: sum.Message, at: sum.At}
}

// of returns the subject with its kind and group.
func (s *subject) of(kind, group string) *subject {
	s.kind, s.group = kind, group
	return s
}

func jobSetSubject(js *jobset.JobSet, owned owners) *subject {
	children := owned.jobs[js.UID]
	s := newSubject(&js.ObjectMeta, jobsetapi.Summary(js, children), owned).of("JobSet", jobset.GroupVersion.Group)
	for _, job := range children {
		s.makers = append(s.makers, job.UID)
	}
	return s
}

// vcJobKind is the kind of a Job of batch.volcano.sh as users call it, since Kubernetes has a kind Job too.
const vcJobKind = "VCJob"

// vcJobSubject returns the subject of a VCJob. What its status says while it is pending matters if it has no Workload.
func vcJobSubject(job *volcano.Job, owned owners) *subject {
	s := newSubject(&job.ObjectMeta, vcjob.Summary(job), owned).of(vcJobKind, volcano.GroupVersion.Group)
	if s.workload != nil {
		s.blocked = ""
	}
	return s
}

// workloadSubject returns the subject of a job known only by its Workload, under the name of the Workload's owner if it
// has one.
func workloadSubject(workload *kueue.Workload) *subject {
	s := &subject{
		meta: &workload.ObjectMeta, kind: "Workload", group: kueue.GroupVersion.Group,
		workload: workload,
		queue:    string(workload.Spec.QueueName),
		requests: corev1.ResourceList{},
		foreign:  true,
	}
	if owner := metav1.GetControllerOf(workload); owner != nil {
		group, _, versioned := strings.Cut(owner.APIVersion, "/")
		if !versioned {
			group = ""
		}
		meta := workload.ObjectMeta.DeepCopy()
		meta.Name, meta.UID = owner.Name, owner.UID
		s.meta, s.kind, s.group = meta, owner.Kind, group
		if group == volcano.GroupVersion.Group && owner.Kind == "Job" {
			s.kind = vcJobKind // it was deleted before its Workload, or may not be listed
		}
	}
	for i := range workload.Spec.PodSets {
		podSet := &workload.Spec.PodSets[i]
		s.pods.asked += podSet.Count
		podspec.AddTimes(s.requests, podspec.Requests(podSet.Template.Spec), podSet.Count)
	}
	return s
}

func condition(w *kueue.Workload, kind string) *metav1.Condition {
	return meta.FindStatusCondition(w.Status.Conditions, kind)
}

// join joins two remarks, either of which may be empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func times(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
