package durations

import (
	"container/list"
	"slices"
	"time"
)

const (
	// remembered is how many of the last runs of a kind count. More would mix in what the kind took long ago.
	remembered = 8
	// mostKinds bounds the memory of a Learner, some 200 bytes a kind: the kind whose last run is longest ago is forgotten
	// first.
	mostKinds = 20_000
)

// Learner remembers how long workloads of each kind ran. It is never needed for correctness: an empty one makes plans
// coarser. Create one with NewLearner; nil has learned nothing.
type Learner struct {
	kinds map[string]*list.Element
	// recent has the kinds, the one with the latest run first.
	recent *list.List
}

// runs are the last runs of a kind.
type runs struct {
	kind string
	// took has the last durations, the oldest at next.
	took [remembered]time.Duration
	n    int
	next int
}

// NewLearner returns a Learner that has learned nothing.
func NewLearner() *Learner { return &Learner{kinds: map[string]*list.Element{}, recent: list.New()} }

// Note notes that a workload has ended after it ran this long.
func (l *Learner) Note(known *Known, took time.Duration) {
	for _, kind := range known.names() {
		l.note(kind, max(took, time.Second))
	}
}

func (l *Learner) note(kind string, took time.Duration) {
	at := l.kinds[kind]
	if at == nil {
		at = l.recent.PushFront(&runs{kind: kind})
		l.kinds[kind] = at
		if len(l.kinds) > mostKinds {
			oldest := l.recent.Back()
			delete(l.kinds, l.recent.Remove(oldest).(*runs).kind)
		}
	}
	l.recent.MoveToFront(at)
	r := at.Value.(*runs)
	r.took[r.next] = took
	r.next = (r.next + 1) % remembered
	r.n = min(r.n+1, remembered)
}

// names returns the names under which a run is remembered, the narrowest first.
func (k *Known) names() []string {
	var out []string
	for _, name := range []string{k.Kind, k.Wider} {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// About returns what workloads like this one took: usual is the time within which three of four ended, and cautious one
// and a half times that within which nine of ten did. The narrowest kind that has any runs counts; ok is false if none
// has.
func (l *Learner) About(known *Known) (usual, cautious time.Duration, ok bool) {
	if l == nil {
		return 0, 0, false
	}
	for _, name := range []string{known.Kind, known.Wider} {
		if at := l.kinds[name]; at != nil {
			r := at.Value.(*runs)
			took := slices.Sorted(slices.Values(r.took[:r.n]))
			return quantile(took, 3, 4), quantile(took, 9, 10) * 3 / 2, true
		}
	}
	return 0, 0, false
}

// quantile returns the shortest of the sorted durations within which part of of them all lie.
func quantile(sorted []time.Duration, part, of int) time.Duration {
	return sorted[(len(sorted)*part+of-1)/of-1]
}

// Len returns the number of kinds that are remembered.
func (l *Learner) Len() int { return len(l.kinds) }
