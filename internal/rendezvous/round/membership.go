package round

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// note records a deadline.
func (g *Group) note(deadline time.Time) {
	if g.due.IsZero() || deadline.Before(g.due) {
		g.due = deadline
	}
}

// Due returns when to call Tick if nothing is observed before; zero if never. It may be too early, so that not every
// event has to look at every pod.
func (g *Group) Due(now time.Time) time.Time {
	if !g.due.IsZero() && !g.due.After(now) {
		g.due = g.nextDeadline(now)
	}
	return g.due
}

// nextDeadline returns the first deadline after now; zero if there is none.
func (g *Group) nextDeadline(now time.Time) time.Time {
	var due time.Time
	at := func(t time.Time) {
		if t.After(now) && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	if !g.running {
		at(g.gathering.Add(g.timeouts.Gather))
	}
	at(g.awaiting.Add(g.timeouts.Gather))
	for _, m := range g.pods {
		at(m.firstSeen.Add(g.timeouts.Gather))
		if m.request.State == protocol.Waiting && !m.lastSeen.IsZero() {
			at(m.lastSeen.Add(g.timeouts.Presence))
		}
	}
	return due
}

// waiting returns, in no order, the present members that wait for a round and are in none.
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

// isWaiting reports whether the agent waits and has not been answered with a round since.
func (m *member) isWaiting() bool {
	return m.request.State == protocol.Waiting && (m.answered == "" || m.answered != m.request.Join)
}

func (g *Group) present(m *member, now time.Time) bool {
	return !m.lastSeen.IsZero() && now.Sub(m.lastSeen) < g.timeouts.Presence
}

// canBegin reports whether a round can begin: all expected pods wait, or the minimum does and the others have taken too
// long.
func (g *Group) canBegin(now time.Time) bool {
	least := g.minMembers()
	if g.states[protocol.Waiting] < least {
		return false
	}
	return len(g.waiting(now)) >= max(least, min(g.expected(now), g.most))
}

// minMembers is the least number of members with which a round begins. Members that have succeeded count towards the
// group's minimum.
func (g *Group) minMembers() int { return max(1, g.fewest-g.succeeded()) }

// succeeded returns how many members have succeeded.
func (g *Group) succeeded() int { return g.done + g.states[protocol.Done] }

// workIsDone reports whether all who had a part in the work have succeeded. A pod that came too late for it
// would wait in vain, and its job, which waits for that pod, would never end.
func (g *Group) workIsDone() bool {
	return g.participants > 0 && g.succeeded() >= g.participants && g.inRound() == 0
}

// excluded returns the pods that come too late to take part: once a member has succeeded, pods that were in no round
// may only replace members that were lost; any others would repeat work that is done. It returns nil if no member has
// succeeded.
func (g *Group) excluded() map[*member]bool {
	succeeded := g.succeeded()
	if succeeded == 0 || g.participants == 0 {
		return nil
	}
	var newcomers []*member
	places := g.participants - succeeded
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

// expected returns how many pods a round waits for: all but pods that have succeeded, and pods that have not asked
// within Gather of being added or of the end of the last round.
func (g *Group) expected(now time.Time) int {
	excluded := g.excluded()
	n := g.missing(len(g.pods)-len(excluded), now)
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
		case g.isMember(m), m.request.State == protocol.Waiting && g.present(m, now),
			now.Before(since.Add(g.timeouts.Gather)):
			n++
		}
	}
	return n
}

// missing returns how many pods a round waits for that do not exist yet, if these are all that do and may take part.
// It waits for each of them at most for Gather: a job goes on with the pods that it has.
func (g *Group) missing(pods int, now time.Time) int {
	if !now.Before(g.awaiting.Add(g.timeouts.Gather)) {
		return 0
	}
	target := g.target
	if g.participants > 0 && g.succeeded() > 0 {
		target = min(target, g.participants) // others would come too late to take part
	}
	return max(0, target-pods-g.done)
}

// shouldGrow reports whether the round is to end so that waiting pods can join it: it is smaller than
// max, none of its members has succeeded, as the others are about to, and all pods that are expected wait.
func (g *Group) shouldGrow(now time.Time) bool {
	if g.size >= g.most || g.succeeded() > 0 || g.states[protocol.Waiting] == 0 {
		return false
	}
	waiting := len(g.waiting(now))
	return waiting > 0 && g.inRound()+waiting >= g.expected(now)
}

// inRound returns how many members of the round have not succeeded yet.
func (g *Group) inRound() int {
	n := 0
	for _, m := range g.pods {
		if g.isMember(m) && m.request.State != protocol.Done {
			n++
		}
	}
	return n
}

// lostMember reports whether an adopted round has lost a member: fewer pods are left that could be members than the
// round has.
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
