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
		at(g.gathering.Add(g.timeouts.Gather))
	}
	for _, m := range g.pods {
		at(m.firstSeen.Add(g.timeouts.Gather))
		if m.request.State == protocol.Waiting && !m.lastSeen.IsZero() {
			at(m.lastSeen.Add(g.timeouts.Presence))
		}
	}
	return due
}

// waiting are those, in no order, who wait for a round that they are not in.
func (g *Group) waiting(now time.Time) []*member {
	var out []*member
	excluded := g.excluded()
	for _, m := range g.pods {
		if !excluded[m] && m.isWaiting() && !g.isMember(m) && g.present(m, now) {
			out = append(out, m)
		}
	}
	return out
}

// waits reports whether the agent waits, and has not been told of a round since.
func (m *member) isWaiting() bool {
	return m.request.State == protocol.Waiting && (m.answered == "" || m.answered != m.request.Join)
}

func (g *Group) present(m *member, now time.Time) bool {
	return !m.lastSeen.IsZero() && now.Sub(m.lastSeen) < g.timeouts.Presence
}

// complete reports whether a round can begin: all are there, or enough and the rest has
// taken too long.
func (g *Group) canBegin(now time.Time) bool {
	waiting := len(g.waiting(now))
	return waiting >= max(g.minMembers(), min(g.expected(now), g.max))
}

// least is the number of members without which no round begins. Those who have ended
// well are missed by nobody.
func (g *Group) minMembers() int { return max(1, g.min-g.finished()) }

// ended is how many members have ended well.
func (g *Group) finished() int {
	n := g.done
	for _, m := range g.pods {
		if m.request.State == protocol.Done {
			n++
		}
	}
	return n
}

// late are the pods that come too late to have a part in the work: once somebody has ended
// well, those who were in no round take the places of members who were lost, and no others.
// They would begin again what is done. Nil for none.
func (g *Group) excluded() map[*member]bool {
	finished := g.finished()
	if finished == 0 || g.participants == 0 {
		return nil
	}
	var newcomers []*member
	places := g.participants - finished
	for _, m := range g.pods {
		switch {
		case m.request.State == protocol.Done:
		case g.isMember(m) || m.request.Round > 0:
			places--
		default:
			newcomers = append(newcomers, m)
		}
	}
	slices.SortFunc(newcomers, inOrder)
	out := map[*member]bool{}
	for _, m := range newcomers[min(len(newcomers), max(0, places)):] {
		out[m] = true
	}
	return out
}

// expected is how many pods a round waits for: none that has ended well, and none that
// has taken too long since there was a reason to come.
func (g *Group) expected(now time.Time) int {
	n := 0
	excluded := g.excluded()
	for _, m := range g.pods {
		if excluded[m] {
			continue
		}
		since := m.firstSeen
		if m.request.State != "" && !g.running && g.gathering.After(since) {
			since = g.gathering
		}
		switch {
		case m.request.State == protocol.Done:
		case g.isMember(m), m.request.State == protocol.Waiting && g.present(m, now), now.Before(since.Add(g.timeouts.Gather)):
			n++
		}
	}
	return n
}

// toBeLarger reports whether the round is to end so that others can join: there is room
// for them, and all have come that can be expected.
func (g *Group) shouldGrow(now time.Time) bool {
	waiting := g.waiting(now)
	if len(waiting) == 0 || g.size >= g.max || g.done > 0 {
		return false
	}
	inRound := 0
	for _, m := range g.pods {
		if m.request.State == protocol.Done {
			return false // the round is about to end well
		}
		if g.isMember(m) {
			inRound++
		}
	}
	return inRound+len(waiting) >= g.expected(now)
}

// hasHoles reports whether members of a round that began before this operator did are
// lost: fewer pods are left that could be them.
func (g *Group) lostMember() bool {
	if !g.adopted {
		return false
	}
	left := g.done
	for _, m := range g.pods {
		if g.isMember(m) || m.request.State == protocol.Done || m.request.State == "" {
			left++
		}
	}
	return left < g.size
}
