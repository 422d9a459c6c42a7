package report

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine"
)

// BindTimes measures the time from a gang's admission until the last of its pods is bound. It must be used by one
// goroutine only.
type BindTimes struct {
	open map[engine.Key]*binding
	// observe is called with each measured time.
	observe func(time.Duration)
}

// binding is an admitted workload with pods that are not bound yet.
type binding struct {
	since time.Time
	wants int32
	bound sets.Set[engine.Key]
}

// NewBindTimes returns an empty BindTimes that passes each time it has measured to observe.
func NewBindTimes(observe func(time.Duration)) *BindTimes {
	return &BindTimes{open: map[engine.Key]*binding{}, observe: observe}
}

// Admitted starts the measurement for a workload that was given places.
func (b *BindTimes) Admitted(key engine.Key, given *engine.Admission, now time.Time) {
	delete(b.open, key)
	var wants int32
	for i := range given.PodSets {
		for _, place := range given.PodSets[i].Places {
			wants += place.Count
		}
	}
	if wants > 0 {
		b.open[key] = &binding{since: now, wants: wants, bound: sets.New[engine.Key]()}
	}
}

// Apply updates the measurements after an engine event.
func (b *BindTimes) Apply(ev engine.Event, now time.Time) {
	switch ev := ev.(type) {
	case engine.PodBound:
		of := b.open[ev.Workload]
		if of == nil {
			return
		}
		of.bound.Insert(ev.Pod.Key)
		if of.bound.Len() >= int(of.wants) {
			delete(b.open, ev.Workload)
			b.observe(now.Sub(of.since))
		}
	case engine.WorkloadGone:
		delete(b.open, ev.Key)
	case engine.Failed:
		delete(b.open, ev.Key)
	case engine.Refused:
		delete(b.open, ev.Key)
	case engine.WorkloadSet:
		if ev.Evicted {
			delete(b.open, ev.Key)
		}
	}
}
