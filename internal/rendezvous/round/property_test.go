package round_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// TestRoundsStayConsistent: after any event the parts that were assigned for a round are consistent, and once nothing
// more happens all pods are in one round.
func TestRoundsStayConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 3).Draw(t, "min")
		most := rapid.IntRange(least, 5).Draw(t, "max")
		r := newSimulation(t, least, most)
		r.slow = rapid.Bool().Draw(t, "slow")
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			r.randomEvent(t, least, most)
			checkParts(t, r, least, most)
			checkMembers(t, r)
		}
		for _, a := range r.pods {
			a.disconnected = false
		}
		for i := range 6 {
			if a := r.pods[name(i)]; a != nil && a.request.State == "" {
				r.wait(nil, i)
			}
		}
		r.settle()
		r.pass(timeouts.Gather)
		r.pass(timeouts.Gather)
		checkQuiet(t, r, least, most)
	})
}

// TestDueIsNeverLate: a group that is told the time only when it is due answers as one that is told it every second.
func TestDueIsNeverLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		least := rapid.IntRange(1, 3).Draw(t, "min")
		group, ticked := round.New(least, 4, timeouts, now), round.New(least, 4, timeouts, now)
		both := func(what func(*round.Group)) { what(group); what(ticked) }
		due := group.Due(now)
		for i := range rapid.IntRange(1, 200).Draw(t, "seconds") {
			now = now.Add(time.Second)
			uid := name(rapid.IntRange(0, 4).Draw(t, "pod"))
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			case 5:
				target := rapid.IntRange(0, 5).Draw(t, "target")
				both(func(g *round.Group) { g.SetTarget(target, now) })
			case 0, 1:
				both(func(g *round.Group) { g.AddPod(round.Pod{UID: uid, Name: uid}, now) })
			case 2, 3:
				wait := protocol.Request{State: protocol.Waiting, Join: fmt.Sprint(i), Address: uid, Port: i}
				both(func(g *round.Group) { g.Observe(uid, wait, now) })
			case 4:
				both(func(g *round.Group) { g.RemovePod(uid, now) })
			}
			ticked.Tick(now)
			if !due.IsZero() && !due.After(now) {
				group.Tick(now)
			}
			due = group.Due(now)
			for i := range 5 {
				got, _ := group.Answer(name(i))
				if want, _ := ticked.Answer(name(i)); !reflect.DeepEqual(got, want) {
					t.Fatalf("answer to %s = %+v, want %+v", name(i), got, want)
				}
			}
		}
	})
}

// randomEvent applies one random event.
func (s *simulation) randomEvent(t *rapid.T, least, most int) {
	i := rapid.IntRange(0, 5).Draw(t, "index")
	a := s.pods[name(i)]
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what == 9:
		s.target = rapid.IntRange(0, 6).Draw(t, "target")
		s.group.SetTarget(s.target, s.now)
	case a == nil:
		s.addPods(i)
	case what == 0:
		s.removePod(i)
	case what == 1:
		a.disconnected = !a.disconnected
		if a.disconnected {
			s.group.Disconnected(a.pod.UID, s.now)
		}
	case what == 2 && a.request.State == protocol.Running:
		s.wait(&protocol.Failure{ExitCode: 1}, i)
	case what == 3:
		a.request = protocol.Request{} // its container restarts
		s.wait(nil, i)
	case what == 4:
		s.restartInOrder(least, most, rapid.Permutation(s.podNames()).Draw(t, "order"))
	case what == 5:
		s.pass(timeouts.Gather / 2)
	case what == 6 && !a.disconnected && a.request.State != "":
		s.obey(a, i) // only this one
	case a.request.State == "":
		s.wait(nil, i)
	default:
		s.settle()
	}
}

func checkParts(t *rapid.T, r *simulation, least, most int) {
	for id, parts := range r.parts {
		which := fmt.Sprintf("%d (%s)", parts[0].Number, id)
		seen := map[int]bool{}
		for _, part := range parts {
			if seen[part.Rank] || part.Rank >= part.Size {
				t.Fatalf("round %s: rank %d of %d was assigned twice, or is invalid", which, part.Rank, part.Size)
			}
			seen[part.Rank] = true
			if part.Number != parts[0].Number || part.Size != parts[0].Size || part.MasterAddress != parts[0].MasterAddress ||
				part.MasterPort != parts[0].MasterPort {
				t.Fatalf("round %s: members got different answers: %+v and %+v", which, parts[0], part)
			}
			if part.Size < least || part.Size > most {
				t.Fatalf("round %s has %d members, want %d to %d", which, part.Size, least, most)
			}
		}
	}
}

// checkMembers checks that all agents that may continue are in one round, with different ranks.
func checkMembers(t *rapid.T, r *simulation) {
	ranks := map[int]string{}
	var first protocol.Request
	for _, pod := range r.podNames() {
		a := r.pods[pod]
		if a.observed.State != protocol.Running || a.observed != a.request {
			continue
		}
		if _, says := r.group.Answer(a.pod.UID); says {
			continue // its round is over
		}
		if len(ranks) == 0 {
			first = a.observed
		}
		if a.observed.ID != first.ID || a.observed.Size != first.Size {
			t.Fatalf("%s continues in round %s of %d, and another pod in %s of %d", pod, a.observed.ID, a.observed.Size,
				first.ID, first.Size)
		}
		if other, taken := ranks[a.observed.Rank]; taken {
			t.Fatalf("%s and %s continue in round %s, both with rank %d", pod, other, first.ID, a.observed.Rank)
		}
		ranks[a.observed.Rank] = pod
	}
}

func checkQuiet(t *rapid.T, r *simulation, least, most int) {
	size := min(len(r.pods), most)
	if size < least {
		size = 0
	}
	ranks := map[int]string{}
	var first protocol.Request
	for _, pod := range r.podNames() {
		said := r.pods[pod].request
		if said.State != protocol.Running {
			continue
		}
		if len(ranks) == 0 {
			first = said
		}
		if said.Round != first.Round || said.ID != first.ID || said.Master != first.Master {
			t.Fatalf("%s is in round %d (%s), and another pod in %d (%s)", pod, said.Round, said.ID, first.Round, first.ID)
		}
		if said.Size != size || said.Rank >= size || ranks[said.Rank] != "" {
			t.Fatalf("%s has rank %d of %d in a round of %d; assigned ranks: %v", pod, said.Rank, said.Size, size, ranks)
		}
		ranks[said.Rank] = pod
	}
	if len(ranks) != size {
		t.Fatalf("%d of %d pods are in a round of %d to %d: %s", len(ranks), len(r.pods), least, most, r.membership())
	}
	before := r.membership()
	r.pass(time.Second)
	if after := r.membership(); after != before {
		t.Fatalf("without an event the round changed from %q to %q", before, after)
	}
}
