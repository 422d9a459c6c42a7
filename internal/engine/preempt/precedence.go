package preempt

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// Precedence remembers who was evicted for whom, so that nobody is ever evicted, over
// however many steps, for somebody who was evicted for him. The zero value is empty
// and ready.
type Precedence struct {
	// winners are those for whom somebody was evicted, losers the other way round.
	winners, losers map[order.Key]sets.Set[order.Key]
}

// Note says that the loser was evicted for the winner. The winner must not be among
// those that the loser is Over.
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

// Over are those for whom key was evicted, those for whom they were, and so on: it
// must not have them evicted. Nil if there are none.
func (p *Precedence) Over(key order.Key) sets.Set[order.Key] {
	if len(p.winners[key]) == 0 {
		return nil
	}
	over := sets.New[order.Key]()
	for next := []order.Key{key}; len(next) > 0; {
		last := len(next) - 1
		at := next[last]
		next = next[:last]
		for winner := range p.winners[at] {
			if !over.Has(winner) {
				over.Insert(winner)
				next = append(next, winner)
			}
		}
	}
	return over
}

// Forget drops what is known of key: it is gone, or not what it was.
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
