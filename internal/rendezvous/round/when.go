package round

import (
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Due is when Tick is to be called if nothing happens before; zero for never.
func (g *Group) Due(now time.Time) time.Time {
	var due time.Time
	at := func(t time.Time) {
		if t.After(now) && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	if !g.running {
		at(g.gathering.Add(g.patience.Gather))
	}
	for _, m := range g.pods {
		at(m.born.Add(g.patience.Gather))
		if m.said.State == protocol.Waiting && !m.heard.IsZero() {
			at(m.heard.Add(g.patience.Presence))
		}
	}
	return due
}

// waiting are those, in no order, who wait for a round that they are not in.
func (g *Group) waiting(now time.Time) []*member {
	var out []*member
	for _, m := range g.pods {
		if m.said.State == protocol.Waiting && !g.in(m) && g.present(m, now) {
			out = append(out, m)
		}
	}
	return out
}

func (g *Group) present(m *member, now time.Time) bool {
	return !m.heard.IsZero() && now.Sub(m.heard) < g.patience.Presence
}

// complete reports whether a round can begin: all are there, or enough and the rest has
// taken too long.
func (g *Group) complete(now time.Time) bool {
	waiting := len(g.waiting(now))
	return waiting >= max(g.least(), min(g.expected(now), g.max))
}

// least is the number of members without which no round begins. Those who have ended
// well are missed by nobody.
func (g *Group) least() int {
	ended := g.done
	for _, m := range g.pods {
		if m.said.State == protocol.Done {
			ended++
		}
	}
	return max(1, g.min-ended)
}

// expected is how many pods a round waits for: none that has ended well, and none that
// has taken too long since there was a reason to come.
func (g *Group) expected(now time.Time) int {
	n := 0
	for _, m := range g.pods {
		called := m.born
		if m.said.State != "" && !g.running && g.gathering.After(called) {
			called = g.gathering
		}
		switch {
		case m.said.State == protocol.Done:
		case g.in(m), m.said.State == protocol.Waiting && g.present(m, now), now.Before(called.Add(g.patience.Gather)):
			n++
		}
	}
	return n
}

// toBeLarger reports whether the round is to end so that others can join: there is room
// for them, and all have come that can be expected.
func (g *Group) toBeLarger(now time.Time) bool {
	waiting := g.waiting(now)
	if len(waiting) == 0 || g.size >= g.max || g.done > 0 {
		return false
	}
	inRound := 0
	for _, m := range g.pods {
		if m.said.State == protocol.Done {
			return false // the round is about to end well
		}
		if g.in(m) {
			inRound++
		}
	}
	return inRound+len(waiting) >= g.expected(now)
}

// hasHoles reports whether members of a round that began before this operator did are
// lost: fewer pods are left that could be them.
func (g *Group) hasHoles() bool {
	if !g.adopted {
		return false
	}
	left := g.done
	for _, m := range g.pods {
		if g.in(m) || m.said.State == protocol.Done || m.said.State == "" {
			left++
		}
	}
	return left < g.size
}
