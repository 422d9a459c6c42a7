package preempt

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// Precedence is the record of which workload was evicted for which other one, so that no workload is ever evicted, even
// over several steps, for one that was evicted for it. The zero value is empty and ready to use.
type Precedence struct {
	// winners are the workloads for which each one was evicted, losers the reverse.
	winners, losers map[order.Key]sets.Set[order.Key]
}

// Note records that the loser was evicted for the winner. Over(winner) must not contain the loser.
func (p *Precedence) Note(winner, loser order.Key) {
	if p.winners == nil {
		p.winners, p.losers = map[order.Key]sets.Set[order.Key]{}, map[order.Key]sets.Set[order.Key]{}
	}
	insert(p.winners, loser, winner)
	insert(p.losers, winner, loser)
}

func insert(edges map[order.Key]sets.Set[order.Key], from, to order.Key) {
	if edges[from] == nil {
		edges[from] = sets.New[order.Key]()
	}
	edges[from].Insert(to)
}

// Over returns the workloads for which key was evicted, those for which they were, and so on: none of them may be
// evicted for key. It is nil if there are none.
func (p *Precedence) Over(key order.Key) sets.Set[order.Key] { return reached(p.winners, key) }

// Under returns the workloads that were evicted for key, those that were evicted for them, and so on: key may be
// evicted for none of them. It is nil if there are none.
func (p *Precedence) Under(key order.Key) sets.Set[order.Key] { return reached(p.losers, key) }

// reached returns all to which edges lead from key, nil if there are none.
func reached(edges map[order.Key]sets.Set[order.Key], key order.Key) sets.Set[order.Key] {
	if len(edges[key]) == 0 {
		return nil
	}
	out := sets.New[order.Key]()
	for next := []order.Key{key}; len(next) > 0; {
		last := len(next) - 1
		at := next[last]
		next = next[:last]
		for to := range edges[at] {
			if !out.Has(to) {
				out.Insert(to)
				next = append(next, to)
			}
		}
	}
	return out
}

// Forget removes key, because the workload is gone or has changed.
func (p *Precedence) Forget(key order.Key) {
	for winner := range p.winners[key] {
		remove(p.losers, winner, key)
	}
	for loser := range p.losers[key] {
		remove(p.winners, loser, key)
	}
	delete(p.winners, key)
	delete(p.losers, key)
}

func remove(edges map[order.Key]sets.Set[order.Key], from, to order.Key) {
	edges[from].Delete(to)
	if edges[from].Len() == 0 {
		delete(edges, from)
	}
}
