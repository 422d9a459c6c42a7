package preempt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/quota"
)

// TestWhatIsNotListedWouldNotHaveBeenAVictim: a search that leaves out what is futile finds what one finds that lists
// all.
func TestWhatIsNotListedWouldNotHaveBeenAVictim(t *testing.T) {
	found, futile := 0, 0
	for seed := range uint64(20_000) {
		l, p := randomSearch(rand.New(rand.NewPCG(seed, 1)))
		all := search{tree: &l.tree, Preemptor: p, futile: true}
		some := search{tree: &l.tree, Preemptor: p}
		all.collect(l.holdersOf)
		some.collect(l.holdersOf)
		want, got := told(all.victims()), told(some.victims())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: victims of %d of %d candidates (-want +got):\n%s", seed, len(some.candidates),
				len(all.candidates), diff)
		}
		if len(want) > 0 {
			found++
		}
		if len(some.candidates) < len(all.candidates) {
			futile++
		}
	}
	if found < 2000 || futile < 2000 {
		t.Errorf("%d searches found victims, and %d left out some candidates: the test tests too little", found, futile)
	}
}

// randomSearch returns a tree of cohorts, of two levels or three, in which quota is held, and a preemptor.
func randomSearch(r *rand.Rand) (*lab, Preemptor) {
	l := newLab().cohort("root", "").cohort("left", "root").cohort("right", "root")
	l.tree.SetCohort("left", "root", quota.Quotas{cpu: limits(r.Int64N(4)), memory: limits(r.Int64N(4))})
	cohorts := []string{"root", "left", "right"}
	var queues []string
	standings := map[string]Standing{}
	for n := range 2 + r.IntN(4) {
		name := fmt.Sprint("q", n)
		l.queue(name, cohorts[r.IntN(len(cohorts))], r.Int64N(6))
		queues = append(queues, name)
		if r.IntN(4) == 0 {
			standings[name] = Standing{Rank: r.Int32N(3), Protected: r.IntN(4) == 0}
		}
	}
	for n := range r.IntN(12) {
		h := &Holder{Key: key(fmt.Sprint("h", n)), Priority: r.Int32N(3), Usage: l.amounts(1+r.Int64N(3), r.Int64N(2)),
			Nominated: r.IntN(6) == 0}
		if !h.Nominated && r.IntN(4) == 0 {
			h.Pod, h.Spare = l.amounts(1, 0), r.Int32N(3)
			h.Usage = h.Pod.Times(h.Spare + 1)
		}
		l.holds(queues[r.IntN(len(queues))], h)
	}
	queue := queues[r.IntN(len(queues))]
	p := l.preemptor(queue, Policy{WithinQueue: Rule(r.IntN(4)), Reclaim: Rule(r.IntN(4)), WhileBorrowing: r.IntN(2) == 0,
		Standing: standings[queue]}, 1+r.Int64N(5))
	p.Priority, p.QueuedAt = r.Int32N(3), epoch.Add(0)
	if r.IntN(2) == 0 {
		p.QueuedAt = epoch.AddDate(1, 0, 0)
	}
	if threshold := r.Int32N(3); p.Policy.WhileBorrowing && threshold > 0 {
		p.Policy.Threshold = &threshold
	}
	p.StandingOf = func(n *quota.Node) Standing { return standings[n.Name()] }
	p.Usage = l.amounts(p.Usage.Of(l.tree.Index(cpu)), r.Int64N(3))
	for _, a := range p.Usage {
		if p.Queue.Available(quota.Planned, a.Index) < a.Value {
			p.Short = append(p.Short, a.Index)
		}
	}
	p.Fair = [][]Strategy{nil, {LessThanOrEqualToFinalShare}, {LessThanInitialShare},
		{LessThanOrEqualToFinalShare, LessThanInitialShare}}[r.IntN(4)]
	return l, p
}

// told describes the victims.
func told(victims []Victim) (out []string) {
	for _, v := range victims {
		out = append(out, fmt.Sprintf("%s of %s: cause %v, gives %d", v.Key.Name, v.Queue.Name(), v.Cause, v.Gives))
	}
	return out
}
