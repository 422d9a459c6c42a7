package waiting

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs/write"
)

// StandingEventRetry returns after how long a job is reconciled again whose standing events the recorder had no
// capacity for. It is up to a minute and random, so that many jobs do not come back at the same time.
func StandingEventRetry() time.Duration { return wait.Jitter(30*time.Second, 1) }

// StandingEvents holds the standing events that each job was given, so that each is recorded once, however often the
// job is reconciled: the event recorder does not recognize a repeated event if the job's resourceVersion has changed.
type StandingEvents struct{ Memory[[]write.Event] }

// StandingOf returns the standing events, and the rest.
func StandingOf(events []write.Event) (standing, others []write.Event) {
	for _, e := range events {
		if e.Standing {
			standing = append(standing, e)
		} else {
			others = append(others, e)
		}
	}
	return standing, others
}

// Record records the job's standing events that were not recorded before, and reports whether all are recorded now:
// record returns false if the recorder has no capacity.
func (s *StandingEvents) Record(job client.Object, standing []write.Event,
	record func(client.Object, write.Event) bool) (all bool) {
	before := s.Get(job)
	var known []write.Event
	for _, e := range standing {
		reportedHere := slices.ContainsFunc(known, e.SameStanding) // a job's API and queue may both report it
		if reportedHere || slices.ContainsFunc(before, e.SameStanding) || record(job, e) {
			known = append(known, e)
		}
	}
	s.Set(job, known)
	return len(known) == len(standing)
}
