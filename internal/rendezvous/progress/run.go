package progress

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Recent is for how long a report silences pods of higher ranks. A pod of any rank is heard once the lowest one has
// reported nothing for that long.
const Recent = 5 * time.Minute

// Rank orders the pods of a job: by their indexes, then by name. Pods without an index come last.
type Rank struct {
	Index []int
	Name  string
}

// Compare returns a negative number if the pod of rank r comes first, 0 if both ranks are the same.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(slices.Compare(r.indexes(), other.indexes()), cmp.Compare(r.Name, other.Name))
}

// indexes returns the indexes, or one that comes last if there is none.
func (r Rank) indexes() []int {
	if len(r.Index) == 0 {
		return []int{math.MaxInt}
	}
	return r.Index
}

// Run is what is known of the progress of one run of a job, from its admission until it is stopped. The zero value is a
// run of which nothing is known. It takes little memory, whatever is reported: metrics are not kept.
type Run struct {
	reported bool
	at       time.Time
	rank     Rank
	// measured says that there is a percentage to measure from: from was reported at since.
	measured bool
	since    time.Time
	from     int64
	// end is when the job is expected to end, zero as long as that is not known.
	end time.Time
	// percentage was reported last, at doneAt, which is zero if none was.
	percentage int64
	doneAt     time.Time
}

// Outlook is what is written of a run: when its job is expected to end, and how much of it is done. The zero value says
// nothing.
type Outlook struct {
	// End is zero if nothing is known.
	End time.Time
	// Percentage was reported at DoneAt, which is zero if none was.
	Percentage int64
	DoneAt     time.Time
}

// Hears reports whether a report of the pod of this rank counts now: no pod of a lower rank has reported recently.
func (r *Run) Hears(rank Rank, now time.Time) bool {
	return !r.reported || rank.Compare(r.rank) <= 0 || now.Sub(r.at) >= Recent
}

// LastHeard returns the rank of the pod that was heard last; false if none was.
func (r *Run) LastHeard() (Rank, bool) { return r.rank, r.reported }

// Take records a report of the pod of this rank, and returns whether it counts. A report without progress does not: it
// says nothing that is kept.
func (r *Run) Take(rank Rank, status *Status, now time.Time) bool {
	if status == nil || status.ProgressPercentage == nil && status.EstimatedRemainingSeconds == nil ||
		!r.Hears(rank, now) {
		return false
	}
	r.reported, r.at, r.rank = true, now, rank
	if status.ProgressPercentage != nil {
		r.percentage, r.doneAt = *status.ProgressPercentage, now
		r.measure(*status.ProgressPercentage, now)
	}
	if seconds := status.EstimatedRemainingSeconds; seconds != nil {
		r.end = now.Add(time.Duration(*seconds) * time.Second)
	}
	return true
}

// measure records a percentage. It derives the end from the pace since the first report of the run, not since the start
// of the job: training that continues from a checkpoint begins with more than 0 %. A percentage below the first one
// begins the measurement anew.
func (r *Run) measure(percentage int64, now time.Time) {
	switch {
	case percentage >= 100:
		r.end = now
	case !r.measured || percentage < r.from:
		r.measured, r.since, r.from = true, now, percentage
	case percentage > r.from && now.After(r.since):
		pace := float64(now.Sub(r.since)) / float64(percentage-r.from) // per percent
		r.end = now.Add(min(time.Duration(pace*float64(100-percentage)), math.MaxInt32*time.Second))
	}
}

// End returns when the job is expected to end, in whole seconds; false if that is not known.
func (r *Run) End() (time.Time, bool) { return r.end.UTC().Truncate(time.Second), !r.end.IsZero() }

// Outlook returns what is known of the rest of the run.
func (r *Run) Outlook() Outlook {
	end, known := r.End()
	if !known {
		return Outlook{}
	}
	return Outlook{End: end, Percentage: r.percentage, DoneAt: r.doneAt}
}

// leastMove is by how much an end must have moved at least to be written: at the very end of a job a tenth of the
// remaining time is a second.
const leastMove = 10 * time.Second

// Moved reports whether an expected end differs from the written one by more than a tenth of the remaining time, so
// that it is written. The zero time stands for an end that is not written at all.
func Moved(written, end, now time.Time) bool {
	if written.IsZero() {
		return true
	}
	return end.Sub(written).Abs() > max(end.Sub(now)/10, leastMove)
}
