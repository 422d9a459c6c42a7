package jobs

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MissingPods records which pods of a job have been missing because the API server refused some of them. Creating all
// pods of a large gang takes many seconds, in which a few pods may be refused temporarily. The zero value means that
// nothing is known.
type MissingPods struct {
	// Pods is the lowest number of missing pods since a refusal was observed. Since is when that number was reached, by
	// this process's clock; it is zero if no pods are refused.
	Pods  int32
	Since time.Time
	// Overcome is the time of the last refusal known when the job ran with no pods missing, by the clock of the event's
	// reporter. Refusals up to then do not count: pods that are missing later may have failed and be waiting for a retry.
	Overcome time.Time
}

// with returns m updated with a new observation: this many pods are missing now.
func (m MissingPods) with(missing int32, now time.Time) MissingPods {
	if m.Since.IsZero() || missing < m.Pods {
		m.Pods, m.Since = missing, now
	}
	return m
}

// MissingPodsAfter returns what is known about the job's missing pods after this reconcile.
func (s Seen[T]) MissingPodsAfter(p Progress) MissingPods {
	switch {
	case s.Admission.Grant != Admitted:
		return MissingPods{} // a later admission starts from scratch
	case p.Refusing:
		return s.MissingPods.with(p.Missing, s.Now)
	}
	out := MissingPods{Overcome: s.MissingPods.Overcome}
	if p.Missing > 0 || !p.Active || len(s.Refusals) == 0 { // a job that has not started may still be missing pods
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
