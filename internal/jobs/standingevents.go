package jobs

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// standingEventRetry returns after how long a job is reconciled again whose standing events the recorder had no
// capacity for. It is up to a minute and random, so that many such jobs do not come back at the same time.
func standingEventRetry() time.Duration { return wait.Jitter(30*time.Second, 1) }

// standingEvents records the standing events that each job was given, so that each is recorded once, however often the
// job is reconciled: the event recorder does not recognize a repeated event if the job's resourceVersion has changed.
// It has no entry for jobs without standing events. The zero value is ready for use.
type standingEvents struct {
	mu sync.Mutex
	of map[types.NamespacedName]standing
}

// standing holds the standing events of the job with this UID.
type standing struct {
	uid    types.UID
	events []Event
}

// standing returns the standing events of the plan, and the others.
func (p Plan) standing() (standing, others []Event) {
	for _, e := range p.Events {
		if e.Standing {
			standing = append(standing, e)
		} else {
			others = append(others, e)
		}
	}
	return standing, others
}

// sameStanding reports whether e need not be recorded after the other event.
func (e Event) sameStanding(other Event) bool {
	if e.Key != "" {
		e.Message, other.Message = "", ""
	}
	return e == other
}

// record records those of the job's standing events that were not recorded before, and reports whether all are recorded
// now: tell returns false if the recorder has no capacity.
func (t *standingEvents) record(job client.Object, standing []Event, record func(client.Object, Event) bool) (all bool) {
	t.mu.Lock()
	before := t.of[client.ObjectKeyFromObject(job)]
	t.mu.Unlock()
	var known []Event
	for _, e := range standing {
		saidHere := slices.ContainsFunc(known, e.sameStanding) // a job's API and queue may both report it
		if saidHere || before.uid == job.GetUID() && slices.ContainsFunc(before.events, e.sameStanding) || record(job, e) {
			known = append(known, e)
		}
	}
	t.remember(job, known)
	return len(known) == len(standing)
}

// remember records which standing events the job was given.
func (t *standingEvents) remember(job client.Object, events []Event) {
	key := client.ObjectKeyFromObject(job)
	if len(events) == 0 {
		t.forget(key)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[types.NamespacedName]standing{}
	}
	t.of[key] = standing{uid: job.GetUID(), events: events}
}

// forget drops the standing events of the job of this name.
func (t *standingEvents) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}
