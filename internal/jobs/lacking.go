package jobs

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lacked records which pods of a job have been missing because the API server refused some of them. Creating all pods
// of a large gang takes many seconds, in which a few pods may be refused temporarily. The zero value means that nothing
// is known.
type Lacked struct {
	// Pods is the lowest number of missing pods since a refusal was observed. Since is when that number was reached, by
	// this process's clock; it is zero if no pods are refused.
	Pods  int32
	Since time.Time
	// Overcome is the time of the last refusal known when the job ran with no pods missing, by the clock of the event's
	// reporter. Refusals up to then do not count: pods that are missing later may have failed and be waiting for a
	// retry.
	Overcome time.Time
}

// with returns l updated with a new observation: lacking pods are missing now.
func (l Lacked) with(lacking int32, now time.Time) Lacked {
	if l.Since.IsZero() || lacking < l.Pods {
		l.Pods, l.Since = lacking, now
	}
	return l
}

// lackedAfter returns what is known about the job's missing pods after this reconcile.
func (s Seen[T]) lackedAfter(p Progress) Lacked {
	switch {
	case s.Admission.Grant != Admitted:
		return Lacked{} // a later admission starts from scratch
	case p.Refusing:
		return s.Lacked.with(p.Lacking, s.Now)
	}
	out := Lacked{Overcome: s.Lacked.Overcome}
	if p.Lacking > 0 || !p.Active || len(s.Refusals) == 0 { // a job that has not started may still be missing pods
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

// lacks remembers Lacked for each job. The zero value is ready for use.
type lacks struct {
	mu sync.Mutex
	of map[types.NamespacedName]lackOf
}

// lackOf is the Lacked of the job with this UID.
type lackOf struct {
	uid types.UID
	Lacked
}

// before returns what is known about the job's missing pods so far.
func (l *lacks) before(job client.Object) Lacked {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.of[client.ObjectKeyFromObject(job)]; known.uid == job.GetUID() {
		return known.Lacked
	}
	return Lacked{}
}

// note records what is known about the job's missing pods.
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

// forget drops what is known about the job of this name.
func (l *lacks) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, key)
}
