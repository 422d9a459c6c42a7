package jobs

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lacked is what is known of the pods that a job lacks because some are refused: a large gang gets its pods for many seconds, of
// which one or the other may be refused for a moment. The zero value is of a job of which nothing is known.
type Lacked struct {
	// Pods is how many it has lacked at least since a refusal was seen, and Since is since when it lacks no fewer, or
	// since that was seen. It is zero for who is refused none, and by our own clock.
	Pods  int32
	Since time.Time
	// Overcome is the last refusal that was known when the job was seen to run and to lack nothing, by the clock of who told it. Pods
	// that it lacks later may have failed and wait to be tried again.
	Overcome time.Time
}

// with is what is known once it is seen that so many are lacking.
func (l Lacked) with(lacking int32, now time.Time) Lacked {
	if l.Since.IsZero() || lacking < l.Pods {
		l.Pods, l.Since = lacking, now
	}
	return l
}

// lackedAfter is what is known of the job after this look at it.
func (s Seen[T]) lackedAfter(p Progress) Lacked {
	switch {
	case s.Admission.Grant != Admitted:
		return Lacked{} // what it will lack once it is admitted again is another matter
	case p.Refusing:
		return s.Lacked.with(p.Lacking, s.Now)
	}
	out := Lacked{Overcome: s.Lacked.Overcome}
	if p.Lacking > 0 || !p.Active || len(s.Refusals) == 0 { // who was not started yet may lack some after all
		return out
	}
	for _, owner := range append([]client.Object{s.Job}, s.Children...) {
		for _, r := range s.Refusals[owner.GetUID()] {
			if r.Last.After(out.Overcome) {
				out.Overcome = r.Last
			}
		}
	}
	return out
}

// lacks remembers what each job has lacked of which pods are refused. The zero value is ready for use.
type lacks struct {
	mu sync.Mutex
	of map[types.NamespacedName]lackOf
}

// lackOf is what the job of this UID has lacked.
type lackOf struct {
	uid types.UID
	Lacked
}

// before is what the job has lacked until now.
func (l *lacks) before(job client.Object) Lacked {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.of[client.ObjectKeyFromObject(job)]; known.uid == job.GetUID() {
		return known.Lacked
	}
	return Lacked{}
}

// note notes what the job has lacked.
func (l *lacks) note(job client.Object, lacked Lacked) {
	key := client.ObjectKeyFromObject(job)
	if lacked == (Lacked{}) {
		l.forget(key)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[types.NamespacedName]lackOf{}
	}
	l.of[key] = lackOf{job.GetUID(), lacked}
}

// forget drops what is known of a job of the name.
func (l *lacks) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, key)
}
