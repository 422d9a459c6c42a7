package waiting

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// TestStandingEventIsIdentifiedByItsKey: an event with a key is recorded again for a new key, not for a new message.
// One without a key is identified by its message.
func TestStandingEventIsIdentifiedByItsKey(t *testing.T) {
	withKey := func(queue, message string) write.Event {
		e := write.Obstacle("QueueNotFound", message)
		e.Key = queue
		return e
	}
	for name, tc := range map[string]struct {
		before, now write.Event
		want        bool // recorded again
	}{
		"the same":      {withKey("q", "there is a"), withKey("q", "there is a"), false},
		"other message": {withKey("q", "there is a"), withKey("q", "there are a, b"), false},
		"another queue": {withKey("q", "there is a"), withKey("r", "there is a"), true},
		"another reason": {write.Event{Reason: jobs.InvalidJob, Key: "q", Standing: true},
			write.Event{Reason: "QueueNotFound", Key: "q", Standing: true}, true},
		"no key, other message": {write.Obstacle(jobs.InvalidJob, "a"), write.Obstacle(jobs.InvalidJob, "b"), true},
		"key added":             {write.Obstacle("QueueNotFound", "a"), withKey("q", "a"), true},
	} {
		var reported StandingEvents
		job, times := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "job-uid"}}, 0
		count := func(client.Object, write.Event) bool { times++; return true }
		reported.Record(job, []write.Event{tc.before}, count)
		reported.Record(job, []write.Event{tc.now}, count)
		if got := times == 2; got != tc.want {
			t.Errorf("%s: recorded again: %v, want %v", name, got, tc.want)
		}
	}
}

// TestEqualStandingEventsOfOnePlanAreRecordedOnce: a job's API and its queue may report the same.
func TestEqualStandingEventsOfOnePlanAreRecordedOnce(t *testing.T) {
	var reported StandingEvents
	job, times := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "job-uid"}}, 0
	same := []write.Event{write.Obstacle(jobs.InvalidJob, "a"), write.Obstacle(jobs.InvalidJob, "a")}
	for range 2 {
		if !reported.Record(job, same, func(client.Object, write.Event) bool { times++; return true }) || times != 1 {
			t.Errorf("recorded %d times, want once", times)
		}
	}
}
