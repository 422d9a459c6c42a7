package jobs

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStandingEventIsIdentifiedByItsKey if it has one: a new message does not record it again, a new key does.
func TestStandingEventIsIdentifiedByItsKey(t *testing.T) {
	about := func(queue, message string) Event {
		e := Obstacle(queueNotFound, message)
		e.Key = queue
		return e
	}
	for name, tc := range map[string]struct {
		before, now Event
		isNews      bool
	}{
		"the same":                   {about("q", "there is a"), about("q", "there is a"), false},
		"in other words":             {about("q", "there is a"), about("q", "there are a, b"), false},
		"another queue":              {about("q", "there is a"), about("r", "there is a"), true},
		"another reason":             {Event{Reason: InvalidJob, Key: "q", Standing: true}, Event{Reason: queueNotFound, Key: "q", Standing: true}, true},
		"what is only its words":     {Obstacle(InvalidJob, "a"), Obstacle(InvalidJob, "b"), true},
		"what says first about what": {Obstacle(queueNotFound, "a"), about("q", "a"), true},
	} {
		var reported standingEvents
		job, times := jobWith(nil), 0
		count := func(client.Object, Event) bool { times++; return true }
		reported.record(job, []Event{tc.before}, count)
		reported.record(job, []Event{tc.now}, count)
		if got := times == 2; got != tc.isNews {
			t.Errorf("%s: reported again is %v, want %v", name, got, tc.isNews)
		}
	}
}

// TestEqualStandingEventsOfOnePlanAreRecordedOnce: a job's API and its queue may report the same.
func TestEqualStandingEventsOfOnePlanAreRecordedOnce(t *testing.T) {
	var reported standingEvents
	job, times := jobWith(nil), 0
	same := []Event{Obstacle(InvalidJob, "a"), Obstacle(InvalidJob, "a")}
	for range 2 {
		if !reported.record(job, same, func(client.Object, Event) bool { times++; return true }) || times != 1 {
			t.Errorf("reported %d times", times)
		}
	}
}
