package trainingjob

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// A job whose workers above its minimum cannot be placed goes on with the workers that run. Its status has the size
// that it keeps to, and until when. The queue takes back the rest, and gives it no more before that: the same would
// happen again. Then, or once nodes can take more pods, the limit is lifted, but not forgotten: if the larger size
// fails again, the next pause is twice as long.
//
// For example, a job of 2 to 4 workers is given 4, and one of them stays pending. After five minutes it goes on with 3,
// for five minutes. It is given 4 again, of which one stays pending again: the next pause is ten minutes.

// goOnWith makes the job go on with only the workers for which keeps is true, because the rest failed for the reason
// given, at least until the time given if that is not zero. It reports whether they are as many as the minimum.
func (p *planner) goOnWith(keeps func(*replicas.Replica) bool, why string, atLeast time.Time) bool {
	s := &p.job.Status
	indices := []int32{}
	for r := range pointers.To(p.roster.Replicas) {
		if keeps(r) {
			indices = append(indices, r.Index)
		}
	}
	size := int32(len(indices))
	if size < sizesOf(p.job).least || size == s.CurrentSize {
		return false
	}
	limit := &breezeml.SizeLimit{Workers: size, Failures: 1, Since: p.now, Message: why}
	if was := s.SizeLimit; was != nil && size <= was.Workers {
		limit.Failures = was.Failures + 1
	}
	until := p.seen.Now.Add(p.pause(limit.Failures))
	if until.Before(atLeast) {
		until = atLeast
	}
	limit.Until = ptr.To(metav1.NewTime(until).Rfc3339Copy())
	p.status.addEvent(write.Warning(breezeml.SizeLimitedReason,
		fmt.Sprintf("The job goes on with %d workers instead of %d: %s. More are tried again at %s, or when nodes can take more pods",
			size, s.CurrentSize, strings.TrimSuffix(why, "."), limit.Until.UTC().Format(timeFormat))))
	s.CurrentSize, s.RequeueTime, s.SizeLimit = size, nil, limit
	p.plan.StatusFirst = true // otherwise the pods that are deleted could be created again
	p.plan.DueBy(limit.Until.Time)
	p.observeWorkers(indices)
	return true
}

// limitOf returns the most workers that the job keeps to at present, 0 for no limit.
func limitOf(job *breezeml.TrainingJob) int32 {
	if limit := job.Status.SizeLimit; limit != nil && limit.Until != nil {
		return limit.Workers
	}
	return 0
}

// reviewLimit lifts the limit once its time is over, or nodes can take more pods.
func (rep *reporter) reviewLimit() {
	limit := rep.job.Status.SizeLimit
	switch {
	case limit == nil:
	case limit.Until != nil && rep.seen.Now.Before(limit.Until.Time) && !rep.nodesGainedSince(limit.Since.Time):
		rep.plan.DueBy(limit.Until.Time)
	case limit.Until != nil:
		lifted := *limit
		lifted.Until = nil
		rep.job.Status.SizeLimit = &lifted
	}
}

// nodesGainedSince reports whether nodes have become able to take more pods after this time, which is in whole seconds.
func (v *view) nodesGainedSince(at time.Time) bool {
	return v.seen.Facts.NodesGained.After(at.Add(time.Second))
}

// forgetLimit forgets the limit once more workers run than it allowed.
func (rep *reporter) forgetLimit() {
	if limit := rep.job.Status.SizeLimit; limit != nil && rep.job.Status.CurrentSize > limit.Workers &&
		rep.roster.All(up) {
		rep.job.Status.SizeLimit = nil
	}
}

// up reports whether the worker runs or has done its work.
func up(r *replicas.Replica) bool {
	return r.Phase == replicas.Succeeded || r.Phase == replicas.Running && !replicas.IsTerminating(r.Pod)
}

// pause returns how long a job rests after this many failures of a larger size in a row: as long as pods may be
// pending, and twice as long each time, up to the cooldown.
func (v *view) pause(failures int32) time.Duration {
	pause := v.settings.PendingTimeout
	for ; failures > 1 && pause < v.settings.Cooldown; failures-- {
		pause *= 2
	}
	return max(min(pause, v.settings.Cooldown), v.settings.PendingTimeout)
}

// timeFormat is how times are written in messages.
const timeFormat = "2006-01-02 15:04:05 UTC"
