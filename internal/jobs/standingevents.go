package jobs

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// untoldPause is after how long a job is looked at again that could not be told what holds for it, for want of time for events: up to a
// minute, each time another. Where many jobs could not be told at once they come one by one, for as many as there is time for.
func untoldPause() time.Duration { return wait.Jitter(30*time.Second, 1) }

// told knows what each job was told that still holds, so that people hear of it once, however often the job is looked at: the
// recorder of events takes each version of a job for another one. It holds nothing of jobs without such news. The zero value
// is ready for use.
type told struct {
	mu sync.Mutex
	of map[types.NamespacedName]standing
}

// standing is what holds for the job of this UID.
type standing struct {
	uid    types.UID
	events []Event
}

// standing are the events of the plan that tell what holds, and others those that tell what is done.
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

// saysSame reports whether whoever was told the other event knows this one.
func (e Event) saysSame(other Event) bool {
	if e.About != "" {
		e.Message, other.Message = "", ""
	}
	return e == other
}

// tell tells the job what holds for it, but what it was told already, and reports whether it knows all of it now: there may be no time for
// events.
func (t *told) tell(job client.Object, standing []Event, tell func(client.Object, Event) bool) (all bool) {
	t.mu.Lock()
	before := t.of[client.ObjectKeyFromObject(job)]
	t.mu.Unlock()
	var known []Event
	for _, e := range standing {
		saidHere := slices.ContainsFunc(known, e.saysSame) // a job that runs may be told what its queue tells it as well
		if saidHere || before.uid == job.GetUID() && slices.ContainsFunc(before.events, e.saysSame) || tell(job, e) {
			known = append(known, e)
		}
	}
	t.note(job, known)
	return len(known) == len(standing)
}

// note notes what holds for the job, and that it was told.
func (t *told) note(job client.Object, events []Event) {
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

// forget notes that nothing holds for a job of the name, or that there is none.
func (t *told) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}
