package jobs

import (
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// durationText is how a ClusterQueue's annotation writes a duration: 1d12h, or 0 for
// none.
var durationText = regexp.MustCompile(`^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$`)

var durationUnits = []time.Duration{365 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond}

// maxDuration is how long a job of the ClusterQueue, nil if there is none, may run at a
// time, zero without a bound. What is no duration was refused when it was written; a
// duration that no clock can hold is no bound.
func maxDuration(q *kueue.ClusterQueue) time.Duration {
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

// until is when the queue of an admitted Workload, nil if there is none, wants its
// quota back, and how long after the admission that is; zero for never.
func until(w *kueue.Workload, queues QueueFacts) (time.Time, time.Duration) {
	if w == nil || w.Status.Admission == nil {
		return time.Time{}, 0
	}
	admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted)
	bound := maxDuration(queues.Cluster[string(w.Status.Admission.ClusterQueue)])
	if admitted == nil || bound == 0 {
		return time.Time{}, 0
	}
	return admitted.LastTransitionTime.Add(bound), bound
}

// within has the request ask for no more time than the queue gives.
func (r request) within(queue string, queues QueueFacts) request {
	local := queues.Local[queue]
	if local == nil {
		return r
	}
	bound := maxDuration(queues.Cluster[string(local.Spec.ClusterQueue)])
	if bound == 0 {
		return r
	}
	// Seconds count, and at least one: a job that could not run at all would wait for ever.
	seconds := int32(min(max(bound.Round(time.Second)/time.Second, 1), 1<<31-1))
	if r.maximumExecutionTimeSeconds == nil || *r.maximumExecutionTimeSeconds > seconds {
		r.maximumExecutionTimeSeconds = ptr.To(seconds)
	}
	return r
}
