package round_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// TestWhateverHappensARoundIsOne: whatever comes in between, the parts given out of a
// round fit together, and once things are quiet everybody who is there is in one round.
func TestWhateverHappensARoundIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 3).Draw(t, "min")
		most := rapid.IntRange(least, 5).Draw(t, "max")
		r := rehearse(t, least, most)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			r.chance(t, least, most)
			checkParts(t, r, least, most)
		}
		for _, a := range r.pods {
			a.silent = false
		}
		for i := range 6 {
			if a := r.pods[name(i)]; a != nil && a.request.State == "" {
				r.wait(nil, i)
			}
		}
		r.settle()
		r.pass(patience.Gather)
		r.pass(patience.Gather)
		checkQuiet(t, r, least, most)
	})
}

// chance is one thing that can happen.
func (r *rehearsal) chance(t *rapid.T, least, most int) {
	i := rapid.IntRange(0, 5).Draw(t, "index")
	a := r.pods[name(i)]
	switch what := rapid.IntRange(0, 8).Draw(t, "what"); {
	case a == nil:
		r.make(i)
	case what == 0:
		r.gone(i)
	case what == 1:
		a.silent = !a.silent
		if a.silent {
			r.group.Silent(a.pod.UID, r.now)
		}
	case what == 2 && a.request.State == protocol.Running:
		r.wait(&protocol.Failure{ExitCode: 1}, i)
	case what == 3:
		a.request = protocol.Request{} // its container begins anew
		r.wait(nil, i)
	case what == 4:
		r.restart(least, most)
	case what == 5:
		r.pass(patience.Gather / 2)
	case what == 6 && !a.silent && a.request.State != "":
		r.heed(a, i) // this one alone
	case a.request.State == "":
		r.wait(nil, i)
	default:
		r.settle()
	}
}

func checkParts(t *rapid.T, r *rehearsal, least, most int) {
	for which, parts := range r.said {
		seen := map[int]bool{}
		for _, part := range parts {
			if seen[part.Rank] || part.Rank >= part.Size {
				t.Fatalf("round %s: rank %d of %d was given out twice, or is none", which, part.Rank, part.Size)
			}
			seen[part.Rank] = true
			if part.Size != parts[0].Size || part.MasterAddress != parts[0].MasterAddress || part.MasterPort != parts[0].MasterPort {
				t.Fatalf("round %s: members were told different things: %+v and %+v", which, parts[0], part)
			}
			if part.Size < least || part.Size > most {
				t.Fatalf("round %s has %d members, not %d to %d", which, part.Size, least, most)
			}
		}
	}
}

func checkQuiet(t *rapid.T, r *rehearsal, least, most int) {
	size := min(len(r.pods), most)
	if size < least {
		size = 0
	}
	var number int64
	running := 0
	for pod, a := range r.pods {
		if a.request.State != protocol.Running {
			continue
		}
		if running++; number == 0 {
			number = a.request.Round
		}
		if a.request.Round != number {
			t.Fatalf("%s is in round %d and another in %d", pod, a.request.Round, number)
		}
	}
	if running != size {
		t.Fatalf("%d of %d pods are in a round of %d to %d: %s", running, len(r.pods), least, most, r.in())
	}
	before := r.in()
	r.pass(time.Second)
	if after := r.in(); after != before {
		t.Fatalf("nothing happened, and yet the round went from %q to %q", before, after)
	}
}
