package jobs

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// standing are the events of the plan that tell what holds.
func (p Plan) standing() (out []Event) {
	for _, e := range p.Events {
		if e.Standing {
			out = append(out, e)
		}
	}
	return out
}

// saysSame reports whether whoever was told the other event knows this one.
func (e Event) saysSame(other Event) bool {
	if e.About != "" {
		e.Message, other.Message = "", ""
	}
	return e == other
}

// keepBack is the plan without what the job was told already.
func (t *told) keepBack(job client.Object, p Plan) Plan {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.of[client.ObjectKeyFromObject(job)]
	if before.uid == job.GetUID() {
		p.Events = slices.DeleteFunc(slices.Clone(p.Events), func(e Event) bool { return slices.ContainsFunc(before.events, e.saysSame) })
	}
	return p
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
