package batchjob

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// builder builds a Job, with a method for each thing that happens to it.
type builder struct{ job *batchv1.Job }

// newJob returns a suspended Job whose parallelism and completions are this many pods of one container. It is marked as
// queued, as the admission policies do at its creation.
func newJob(pods int32) builder {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "uid", Generation: 1,
		Annotations: map[string]string{muster.QueuedAnnotation: muster.QueuedItself}}}
	job.Spec.Suspend, job.Spec.Parallelism, job.Spec.Completions = ptr.To(true), ptr.To(pods), ptr.To(pods)
	job.Spec.Template.Labels = map[string]string{"job-name": "j"}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	return builder{job}
}

func (b builder) completions(n int32) builder { b.job.Spec.Completions = ptr.To(n); return b }
func (b builder) withoutCompletions() builder { b.job.Spec.Completions = nil; return b }
func (b builder) indexed() builder {
	b.job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	return b
}

func (b builder) annotated(key, value string) builder {
	metav1.SetMetaDataAnnotation(&b.job.ObjectMeta, key, value)
	return b
}

// unmarked removes the mark, as of a Job that was made before there were marks.
func (b builder) unmarked() builder { delete(b.job.Annotations, muster.QueuedAnnotation); return b }

func (b builder) changed() builder { b.job.Generation++; return b }
func (b builder) resumed() builder { b.job.Spec.Suspend = ptr.To(false); return b.changed() }
func (b builder) unheld() builder  { b.job.Spec.Suspend = ptr.To(false); return b }

// stopped suspends the Job after it ran; its status is unchanged.
func (b builder) stopped() builder { b.job.Spec.Suspend = ptr.To(true); return b.changed() }

// acknowledged adds the condition by which the Job controller has observed the suspension.
func (b builder) acknowledged() builder { return b.is(batchv1.JobSuspended, "") }

func (b builder) is(kind batchv1.JobConditionType, message string) builder {
	b.job.Status.Conditions = append(b.job.Status.Conditions,
		batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Message: message})
	return b
}

// uncounted adds pods that have succeeded and that the Job controller has not counted yet.
func (b builder) uncounted(pods ...types.UID) builder {
	b.job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: pods}
	return b
}

func (b builder) pods(active, ready, succeeded int32) builder {
	b.job.Status.Active, b.job.Status.Ready, b.job.Status.Succeeded = active, ptr.To(ready), succeeded
	return b
}

func (b builder) completed(indexes string) builder { b.job.Status.CompletedIndexes = indexes; return b }

// failed sets the indexes that have failed for good.
func (b builder) failed(indexes string) builder {
	b.job.Status.FailedIndexes = &indexes
	return b
}

func (b builder) terminating(n int32) builder { b.job.Status.Terminating = ptr.To(n); return b }

func (b builder) startedAt(at time.Time) builder {
	b.job.Status.StartTime = ptr.To(metav1.NewTime(at))
	return b
}

// started returns the Job after its start with the grant.
func (b builder) started(granted jobs.PodSetAdmission) builder {
	return builder{started(b.job, granted, podspec.Agent{})}.changed()
}

// grant returns an admission of this many pods on the nodes of a pool.
func grant(pods int32) jobs.PodSetAdmission {
	return jobs.PodSetAdmission{Count: pods, Left: pods, Injection: podspec.Injection{
		Labels:       map[string]string{"kueue.x-k8s.io/podset": "main"},
		NodeSelector: map[string]string{"pool": "f"},
		Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}},
	}}
}

// admitted returns an admission with the pod set.
func admitted(granted jobs.PodSetAdmission) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{"main": granted}}
}

var (
	waiting  = jobs.Admission{Grant: jobs.Waiting}
	stopping = jobs.Admission{Grant: jobs.Stopping}
)

// checkedPlan returns the plan, and checks that nothing observed was modified.
func checkedPlan(t *testing.T, job *batchv1.Job, admission jobs.Admission) jobs.Plan {
	t.Helper()
	before := job.DeepCopy()
	p := plan(jobs.Seen[*batchv1.Job]{Job: job, Admission: admission, Now: now})
	if diff := cmp.Diff(before, job); diff != "" {
		t.Errorf("plan changed the Job (-before +after):\n%s", diff)
	}
	return p
}

// writes returns the plan's writes, which are all of the Job, as "verb: fields", or "start time cleared".
func writes(p jobs.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		job := w.Object().(*batchv1.Job)
		line := fmt.Sprintf("%s: suspend=%v parallelism=%d pool=%s", w.Verb(), *job.Spec.Suspend, *job.Spec.Parallelism,
			job.Spec.Template.Spec.NodeSelector["pool"])
		if job.Status.StartTime == nil && w.Verb() == "change status of" {
			line = "start time cleared"
		}
		out = append(out, line)
	}
	return out
}

// events returns the events of a plan's writes, and then its own, as "Type Reason: message".
func events(p jobs.Plan) []string {
	var out []string
	add := func(e write.Event) { out = append(out, e.Type+" "+e.Reason+": "+e.Message) }
	for _, w := range p.Writes {
		if e := w.SuccessEvent(); e != nil {
			add(*e)
		}
	}
	for _, e := range p.Events {
		add(e)
	}
	return out
}
