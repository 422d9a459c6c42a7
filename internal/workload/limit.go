package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// Limit is a time limit: how long a job may run, and where that is set.
type Limit struct {
	// Duration is at least a second, so that every job runs at all.
	Duration time.Duration
	// Source is the field or the annotation that sets the limit, and the object that has it: "muster.dev/max-duration of
	// ClusterQueue research".
	Source string
	// Ends is when the job reaches the limit, zero while its Workload is not admitted. It lies in the past for a limit
	// below the time that the job has run.
	Ends time.Time
	// Pauses says that the job is paused at the limit, which its own controller does; the Workload of another job is
	// deactivated.
	Pauses bool
}

// Limits returns the time limits of a Workload: its own, and those of its LocalQueue and of its ClusterQueue, either of
// which may be nil. The one that counts is first: the one that is reached first, or of several the more specific one.
//
// An example: a Workload may run for 2 h and has run for 30 minutes in an earlier admission. Its LocalQueue has a limit
// of 1 h, so it reaches the limit of the LocalQueue 30 minutes after its admission, and its own an hour later. A
// GenericJob has the whole limit of its queue each time that it is admitted.
func Limits(w *kueue.Workload, local *kueue.LocalQueue, cluster *kueue.ClusterQueue) []Limit {
	var out []Limit
	past := time.Duration(ptr.Deref(w.Status.AccumulatedPastExexcutionTimeSeconds, 0)) * time.Second
	if own := w.Spec.MaximumExecutionTimeSeconds; own != nil {
		out = append(out, limitOf(w, time.Duration(*own)*time.Second, past,
			"spec.maximumExecutionTimeSeconds of the Workload"))
	}
	bound, source := QueueLimit(local, cluster)
	if bound > 0 {
		pauses := pausesAtLimits(w)
		if pauses {
			past = 0
		}
		limit := limitOf(w, bound, past, source)
		limit.Pauses = pauses
		out = append(out, limit)
	}
	slices.SortStableFunc(out, func(a, b Limit) int {
		if a.Ends.IsZero() {
			return int(min(max(a.Duration-b.Duration, -1), 1))
		}
		return a.Ends.Compare(b.Ends)
	})
	return out
}

// QueueLimit returns how long a job of the two queues may run, and which of them says so: the smaller of their limits,
// or 0 without a limit. Either queue may be nil. An invalid duration is refused when the annotation is written; one
// that overflows time.Duration is no limit.
func QueueLimit(local *kueue.LocalQueue, cluster *kueue.ClusterQueue) (limit time.Duration, source string) {
	var own, shared time.Duration
	if local != nil {
		own = MaxDuration(local)
	}
	if cluster != nil {
		shared = MaxDuration(cluster)
	}
	switch {
	case own > 0 && (shared == 0 || own <= shared):
		return own, muster.MaxDurationAnnotation + " of LocalQueue " + local.Name
	case shared > 0:
		return shared, muster.MaxDurationAnnotation + " of ClusterQueue " + cluster.Name
	}
	return 0, ""
}

// MaxDuration returns how long a job of the queue may run as far as the queue's annotation says, 0 without a limit.
func MaxDuration(queue metav1.Object) time.Duration {
	text, set := queue.GetAnnotations()[muster.MaxDurationAnnotation]
	if !set {
		return 0
	}
	limit, _ := ParseDuration(text)
	return limit
}

// limitOf returns the limit of a Workload that has run for some time in past admissions.
func limitOf(w *kueue.Workload, d, past time.Duration, source string) Limit {
	d = max(d, time.Second)
	limit := Limit{Duration: d, Source: source}
	if admitted := TrueSince(w, kueue.WorkloadAdmitted); !admitted.IsZero() {
		limit.Ends = admitted.Add(d - past)
	}
	return limit
}

// pausesAtLimits reports whether the Workload is of a job that its controller pauses at the limit of its queue.
func pausesAtLimits(w *kueue.Workload) bool {
	owner := metav1.GetControllerOfNoCopy(w)
	if owner == nil || owner.Kind != "GenericJob" {
		return false
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == "batch.tensorstack.dev"
}

// Bounds of the warning before a time limit: the shortest limit of which there is one, and how long before the limit
// the warning comes at least and at most.
const (
	shortestWarned = 2 * time.Minute
	warnedAtLeast  = time.Minute
	warnedAtMost   = 10 * time.Minute
)

// Warns returns when the job is warned that it reaches the limit: when a tenth of the limit is left, at most 10 minutes
// and at least one. Zero for a limit below 2 minutes, and while the Workload is not admitted.
func (l Limit) Warns() time.Time {
	if l.Ends.IsZero() || l.Duration < shortestWarned {
		return time.Time{}
	}
	return l.Ends.Add(-min(max(l.Duration/10, warnedAtLeast), warnedAtMost))
}

// String describes the limit: "2h, set by muster.dev/max-duration of ClusterQueue research".
func (l Limit) String() string {
	return fmt.Sprintf("%s, set by %s", FormatDuration(l.Duration), l.Source)
}

// FormatDuration writes a duration as annotations of queues do: 1d12h, 90s as 1m30s. Parts below a millisecond are
// dropped.
func FormatDuration(d time.Duration) string {
	var text strings.Builder
	for i, name := range []string{"d", "h", "m", "s", "ms"} {
		unit := durationUnits[i+2]
		if n := d / unit; n > 0 {
			text.WriteString(strconv.FormatInt(int64(n), 10) + name)
			d -= n * unit
		}
	}
	if text.Len() == 0 {
		return "0s"
	}
	return text.String()
}
