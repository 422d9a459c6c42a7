package jobs

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStandingEventIsIdentifiedByItsKey: an event with a key is recorded again for a new key, not for a new message.
// One without a key is identified by its message.
func TestStandingEventIsIdentifiedByItsKey(t *testing.T) {
	withKey := func(queue, message string) Event {
		e := Obstacle(queueNotFound, message)
		e.Key = queue
		return e
	}
	for name, tc := range map[string]struct {
		before, now Event
		want        bool // recorded again
	}{
		"the same":              {withKey("q", "there is a"), withKey("q", "there is a"), false},
		"other message":         {withKey("q", "there is a"), withKey("q", "there are a, b"), false},
		"another queue":         {withKey("q", "there is a"), withKey("r", "there is a"), true},
		"another reason":        {Event{Reason: InvalidJob, Key: "q", Standing: true}, Event{Reason: queueNotFound, Key: "q", Standing: true}, true},
		"no key, other message": {Obstacle(InvalidJob, "a"), Obstacle(InvalidJob, "b"), true},
		"key added":             {Obstacle(queueNotFound, "a"), withKey("q", "a"), true},
	} {
		var reported standingEvents
		job, times := jobWith(nil), 0
		count := func(client.Object, Event) bool { times++; return true }
		reported.tell(job, []Event{tc.before}, count)
		reported.tell(job, []Event{tc.now}, count)
		if got := times == 2; got != tc.want {
			t.Errorf("%s: recorded again: %v, want %v", name, got, tc.want)
		}
	}
}

// TestEqualStandingEventsOfOnePlanAreRecordedOnce: a job's API and its queue may report the same.
func TestEqualStandingEventsOfOnePlanAreRecordedOnce(t *testing.T) {
	var reported standingEvents
	job, times := jobWith(nil), 0
	same := []Event{Obstacle(InvalidJob, "a"), Obstacle(InvalidJob, "a")}
	for range 2 {
		if !reported.tell(job, same, func(client.Object, Event) bool { times++; return true }) || times != 1 {
			t.Errorf("recorded %d times, want once", times)
		}
	}
}
