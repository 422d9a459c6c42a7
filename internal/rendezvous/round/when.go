package round

import (
	"slices"
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
	late := g.late()
	for _, m := range g.pods {
		if !late[m] && m.waits() && !g.in(m) && g.present(m, now) {
			out = append(out, m)
		}
	}
	return out
}

// waits reports whether the agent waits, and has not been told of a round since.
func (m *member) waits() bool {
	return m.said.State == protocol.Waiting && (m.told == "" || m.told != m.said.Join)
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
func (g *Group) least() int { return max(1, g.min-g.ended()) }

// ended is how many members have ended well.
func (g *Group) ended() int {
	n := g.done
	for _, m := range g.pods {
		if m.said.State == protocol.Done {
			n++
		}
	}
	return n
}

// late are the pods that come too late to have a part in the work: once somebody has ended
// well, those who were in no round take the places of members who were lost, and no others.
// They would begin again what is done. Nil for none.
func (g *Group) late() map[*member]bool {
	ended := g.ended()
	if ended == 0 || g.whole == 0 {
		return nil
	}
	var strangers []*member
	places := g.whole - ended
	for _, m := range g.pods {
		switch {
		case m.said.State == protocol.Done:
		case g.in(m) || m.said.Round > 0:
			places--
		default:
			strangers = append(strangers, m)
		}
	}
	slices.SortFunc(strangers, inOrder)
	out := map[*member]bool{}
	for _, m := range strangers[min(len(strangers), max(0, places)):] {
		out[m] = true
	}
	return out
}

// expected is how many pods a round waits for: none that has ended well, and none that
// has taken too long since there was a reason to come.
func (g *Group) expected(now time.Time) int {
	n := 0
	late := g.late()
	for _, m := range g.pods {
		if late[m] {
			continue
		}
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
