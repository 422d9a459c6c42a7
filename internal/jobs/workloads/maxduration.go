package workloads

import (
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// durationText matches durations as in a ClusterQueue's annotation: 1d12h, or 0 for none.
var durationText = regexp.MustCompile(`^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$`)

var durationUnits = []time.Duration{365 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute,
	time.Second, time.Millisecond}

// MaxDuration returns how long a job of the ClusterQueue may run at a time, zero without a bound. q may be nil. An
// invalid duration is rejected when the annotation is written; one that overflows time.Duration is no bound.
func MaxDuration(q *kueue.ClusterQueue) time.Duration {
	if q == nil {
		return 0
	}
	parts := durationText.FindStringSubmatch(q.Annotations[muster.MaxDurationAnnotation])
	if parts == nil {
		return 0
	}
	var sum time.Duration
	for i, unit := range durationUnits {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || time.Duration(n) > (1<<63-1-sum)/unit {
			return 0
		}
		sum += time.Duration(n) * unit
	}
	return sum
}

// until returns when the queue of an admitted Workload wants its quota back, and how long after the admission that is;
// zero for never. w may be nil.
func until(w *kueue.Workload, queues jobs.QueueFacts) (time.Time, time.Duration) {
	if w == nil || w.Status.Admission == nil {
		return time.Time{}, 0
	}
	admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted)
	bound := MaxDuration(queues.Cluster[string(w.Status.Admission.ClusterQueue)])
	if admitted == nil || bound == 0 {
		return time.Time{}, 0
	}
	return admitted.LastTransitionTime.Add(bound), bound
}

// within caps the requested execution time at the bound of the queue.
func (r request) within(queue string, queues jobs.QueueFacts) request {
	local := queues.Local[queue]
	if local == nil {
		return r
	}
	bound := MaxDuration(queues.Cluster[string(local.Spec.ClusterQueue)])
	if bound == 0 {
		return r
	}
	// The bound is rounded to seconds and is at least one: a job that could not run at all would wait forever.
	seconds := int32(min(max(bound.Round(time.Second)/time.Second, 1), 1<<31-1))
	if r.maximumExecutionTimeSeconds == nil || *r.maximumExecutionTimeSeconds > seconds {
		r.maximumExecutionTimeSeconds = ptr.To(seconds)
	}
	return r
}
