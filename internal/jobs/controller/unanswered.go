package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// The Job controller answers in the status of a batch Job: it sets startTime when it has seen that the Job was resumed,
// and the condition Suspended when it has seen that the Job was suspended. Sometimes it does not answer. It knows Jobs
// by name, and may still expect pods of a Job that was deleted a moment ago; then it leaves a new Job of that name
// alone for five minutes, and after that until something changes the Job.
//
// Muster must not wait for that answer for ever, since the Job holds quota. It looks at the pods itself:
//
//   - A Job that was admitted and gets no answer has no pods. It is evicted, like a job whose pods are refused.
//   - A Job that was evicted and gets no answer is taken for suspended once the API server lists none of its pods.
//   - In both cases the Job is touched now and then, so that the Job controller looks at it again.
//
// No answer yet is no proof that none will come: a Job controller that is slow, or down for a moment, may still create
// the pods of a Job that it has not seen suspended, with quota that others have by then. So Muster waits for longer
// than the Job controller leaves a Job alone, unless a Job of that name was deleted a moment ago, which explains the
// silence. The time counts from the last answer about any Job of the same JobSet.
const (
	// recreatedPatience is how long a Job may get no answer if another one of its name was deleted lately.
	recreatedPatience = jobs.RefusalPatience
	// answerPatience is how long any other Job may get no answer. The Job controller leaves a Job alone for 5 minutes.
	answerPatience = 5*time.Minute + 30*time.Second
	// touchInterval is the time between two touches of a Job.
	touchInterval = time.Minute
)

// awaitsAnswer reports whether the status of the Job shows no trace of what its spec says now.
func awaitsAnswer(job *batchv1.Job) bool {
	if !job.DeletionTimestamp.IsZero() || jobs.IsDecided(job) ||
		ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
		return false
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		return job.Generation > 1 && jobs.TrueCondition(job, batchv1.JobSuspended) == nil
	}
	return job.Status.StartTime == nil && jobs.PodsLeft(job) > 0 && job.Status.Active == 0 &&
		ptr.Deref(job.Status.Terminating, 0) == 0
}

// awaiting returns the batch Jobs of the job that get no answer to what its grant has made of them.
func awaiting[T client.Object](s jobs.Seen[T]) (out []*batchv1.Job) {
	look := func(object client.Object) {
		job, is := object.(*batchv1.Job)
		if is && awaitsAnswer(job) && ptr.Deref(job.Spec.Suspend, false) == (s.Admission.Grant == jobs.Stopping) {
			out = append(out, job)
		}
	}
	look(s.Job)
	for _, child := range s.Children {
		look(child)
	}
	return out
}

// lookAtSilent looks at the batch Jobs of the job that have got no answer for too long. Jobs that were suspended and
// have no pods are replaced in seen by ones that the Job controller has answered. own is the job's Workload.
func (r *reconciler[T]) lookAtSilent(ctx context.Context, seen *jobs.Seen[T], own *kueue.Workload) (silent, error) {
	waiting := awaiting(*seen)
	if own == nil || !seen.Admission.HoldsQuota() || len(waiting) == 0 {
		r.unanswered.Set(seen.Job, unanswered{})
		return silent{}, nil
	}
	known := r.unanswered.Get(seen.Job)
	if known.grant != seen.Admission.Grant || len(waiting) < known.jobs {
		known = unanswered{grant: seen.Admission.Grant, jobs: len(waiting), since: seen.Now}
	}
	defer func() { r.unanswered.Set(seen.Job, known) }()
	patience := answerPatience
	if slices.ContainsFunc(waiting, func(job *batchv1.Job) bool { return r.router.gone.hadName(job, seen.Now) }) {
		patience = recreatedPatience
	}
	if due := known.since.Add(patience); seen.Now.Before(due) {
		return silent{due: due}, nil
	}
	vacant, err := r.read.withoutPods(ctx, seen.Job, own, waiting)
	if err != nil || len(vacant) == 0 {
		return silent{due: seen.Now.Add(recreatedPatience)}, err
	}
	out := silent{due: seen.Now.Add(touchInterval), so: seen.Now.Sub(known.since).Round(time.Second)}
	if seen.Now.Sub(known.touched) >= touchInterval {
		known.touched = seen.Now
		for _, job := range vacant {
			out.touches = append(out.touches, touch(job, seen.Now))
		}
	}
	if seen.Admission.Grant == jobs.Admitted {
		out.without = vacant[0]
	} else {
		takeForSuspended(seen, vacant)
	}
	return out, nil
}

// withoutPods returns the batch Jobs of which all pods have ended or are gone, as the API server says.
func (r *reader[T]) withoutPods(ctx context.Context, job T, own *kueue.Workload,
	of []*batchv1.Job) ([]*batchv1.Job, error) {
	pods, err := runningPods(ctx, r.live, own, r.api.podLabels(job.GetUID()))
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for i := range pods {
		has[pods[i].Labels[batchv1.ControllerUidLabel]] = true
	}
	return slices.DeleteFunc(slices.Clone(of), func(job *batchv1.Job) bool { return has[string(job.UID)] }), nil
}

// takeForSuspended replaces the Jobs by ones that say what the Job controller would say of them.
func takeForSuspended[T client.Object](s *jobs.Seen[T], vacant []*batchv1.Job) {
	answered := func(object client.Object) client.Object {
		job, is := object.(*batchv1.Job)
		if !is || !slices.Contains(vacant, job) {
			return object
		}
		out := job.DeepCopy()
		out.Spec.Suspend = ptr.To(true)
		out.Status.Active, out.Status.Terminating = 0, nil
		out.Status.Conditions = append(out.Status.Conditions,
			batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
		return out
	}
	s.Job = answered(s.Job).(T)
	s.Children = slices.Clone(s.Children)
	for i := range s.Children {
		s.Children[i] = answered(s.Children[i])
	}
}

// touch changes an annotation of the Job, so that the Job controller looks at it.
func touch(job *batchv1.Job, now time.Time) write.Write {
	touched := job.DeepCopy()
	metav1.SetMetaDataAnnotation(&touched.ObjectMeta, muster.TouchedAnnotation, now.UTC().Format(time.RFC3339))
	return write.Change(job, touched)
}

// add adds to the plan what follows from the silence. The plan's own writes come first: a Job that it changes is looked
// at anyway.
func (s silent) add(p *jobs.Plan, unready bool) {
	p.DueBy(s.due)
	for _, touch := range s.touches {
		if !slices.ContainsFunc(p.Writes,
			func(w write.Write) bool { return w.Object().GetUID() == touch.Object().GetUID() && !w.IsToWorkload() }) {
			p.Add(touch)
		}
	}
	if s.without != nil && unready && p.Progress.Outcome == nil && p.Progress.Refused == "" {
		p.Progress.RefusedWhat = fmt.Sprintf("Job %s has no pods", s.without.Name)
		p.Progress.Refused = fmt.Sprintf(
			"the Job controller of Kubernetes has not looked at it for %s; it may leave a Job alone for five minutes if another one of its name was just deleted", s.so)
	}
}

// notesGone lets all events pass, and notes batch Jobs that are gone.
func (r *router[T]) notesGone() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		if _, is := e.Object.(*batchv1.Job); is {
			r.gone.note(e.Object, r.clock.Now())
		}
		return true
	}}
}
