package view

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// farthestEnd is how far ahead an expected end may lie: a later one says nothing.
const farthestEnd = 10 * 365 * 24 * time.Hour

// limitingQueues are the queues of a snapshot, by their names.
type limitingQueues struct {
	local   map[types.NamespacedName]*kueue.LocalQueue
	cluster map[string]*kueue.ClusterQueue
}

func (s *Snapshot) limitingQueues() limitingQueues {
	out := limitingQueues{map[types.NamespacedName]*kueue.LocalQueue{}, map[string]*kueue.ClusterQueue{}}
	for i := range s.LocalQueues {
		q := &s.LocalQueues[i]
		out.local[types.NamespacedName{Namespace: q.Namespace, Name: q.Name}] = q
	}
	for i := range s.ClusterQueues {
		out.cluster[s.ClusterQueues[i].Name] = &s.ClusterQueues[i]
	}
	return out
}

// addTimes adds to a job that runs the time that it has left, and when it expects to end. Where the reader may not see
// the queue that limits the job, the operator's warning says so once the limit is near.
func (l limitingQueues) addTimes(job *Job, w *kueue.Workload, now time.Time) {
	runs := job.State == Running || job.State == Starting || job.State == Admitted
	if w == nil || !runs || !workload.IsAdmitted(w) {
		return
	}
	if job.ExpectedEnd = expectedEnd(w, now); job.ExpectedEnd != nil {
		job.ProgressPercentage = percentageDone(w, job.ExpectedEnd.Time, now)
	}
	limits := workload.Limits(w, l.local[types.NamespacedName{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}],
		l.cluster[job.ClusterQueue])
	if near := workload.IfTrue(w, muster.TimeLimitNearCondition); near != nil && len(limits) == 0 {
		job.Message = join(job.Message, near.Message)
	}
	own := workload.OwnLimit(w)
	ends := workload.TrueSince(w, kueue.WorkloadAdmitted).Add(own)
	if own > 0 && (len(limits) == 0 || ends.Before(limits[0].Ends)) {
		job.Limit = &TimeLimit{Seconds: int64(own / time.Second), Source: "the job", EndsAt: metav1.NewTime(ends), Own: true}
		job.LeftSeconds = seconds(ends.Sub(now))
		return
	}
	if len(limits) == 0 {
		return
	}
	first := limits[0]
	job.Limit = &TimeLimit{Seconds: int64(first.Duration / time.Second), Source: first.Source,
		EndsAt: metav1.NewTime(first.Ends), Pauses: first.Pauses}
	job.LeftSeconds = seconds(first.Ends.Sub(now))
}

// expectedEnd returns when the job of the Workload expects to end, nil if it does not say. What the annotation holds is
// not trusted: a text that is no time, or a time that has passed or lies years ahead, says nothing.
func expectedEnd(w *kueue.Workload, now time.Time) *metav1.Time {
	text := w.Annotations[muster.ExpectedEndAnnotation]
	end, err := time.Parse(time.RFC3339, text)
	// time.Parse takes more than RFC 3339 allows.
	strict := text == end.Format(time.RFC3339) || text == end.Format(time.RFC3339Nano)
	if err != nil || !strict || !end.After(now) || end.Sub(now) > farthestEnd {
		return nil
	}
	return &metav1.Time{Time: end}
}

// percentageDone returns about how much of the job of the Workload is done now, from 0 to 99, if it progresses evenly
// from what it reported to its expected end; nil if it reported no percentage.
func percentageDone(w *kueue.Workload, end, now time.Time) *int64 {
	reported, at, ok := workload.ParseProgress(w.Annotations[muster.ReportedProgressAnnotation])
	if !ok || at.After(now) {
		return nil
	}
	passed := float64(now.Sub(at)) / float64(end.Sub(at))
	done := min(reported+int64(passed*float64(100-reported)), 99)
	return &done
}
