package rendezvous

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// roundHall is a job whose rounds are decided here.
type roundHall struct {
	news
	mu      sync.Mutex
	group   *round.Group
	timer   *time.Timer
	version uint64
	// sizedAt is when the pod was made whose sizes hold. The halls keep it.
	sizedAt time.Time
	// last is the request of each pod that came last.
	last map[string]uint64
}

func newRoundHall(least, most int, patience round.Patience) *roundHall {
	h := &roundHall{group: round.New(least, most, patience, time.Now()), last: map[string]uint64{}}
	h.timer = time.AfterFunc(time.Hour, func() { h.change(func(g *round.Group, now time.Time) { g.Tick(now) }) })
	h.timer.Stop()
	return h
}

// change tells the group something, and everybody who waits if that changed what is to be said.
func (h *roundHall) change(what func(*round.Group, time.Time)) {
	h.mu.Lock()
	now := time.Now()
	what(h.group, now)
	version := h.group.Version()
	changed := version != h.version
	h.version = version
	if due := h.group.Due(now); due.IsZero() {
		h.timer.Stop()
	} else {
		h.timer.Reset(due.Sub(now))
	}
	h.mu.Unlock()
	if changed {
		h.tell()
	}
}

func (h *roundHall) hear(who caller, said protocol.Request, request uint64) (known bool) {
	h.change(func(g *round.Group, now time.Time) {
		if known = g.Hear(who.UID, said, now); known {
			h.last[who.UID] = request
		}
	})
	return known
}

func (h *roundHall) silent(who caller, request uint64) {
	h.change(func(g *round.Group, now time.Time) {
		if h.last[who.UID] == request {
			g.Silent(who.UID, now)
		}
	})
}

// pod tells that a pod lives, or that it does not any more.
func (h *roundHall) pod(pod round.Pod, lives, succeeded bool) {
	h.change(func(g *round.Group, now time.Time) {
		if lives {
			g.PodLives(pod, now)
		} else {
			g.PodGone(pod.UID, succeeded, now)
			delete(h.last, pod.UID)
		}
	})
}

func (h *roundHall) resize(least, most int) {
	h.change(func(g *round.Group, now time.Time) { g.Resize(least, most, now) })
}

func (h *roundHall) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.group.Empty()
}

func (h *roundHall) answer(_ context.Context, who caller, said protocol.Request, _ uint64) (protocol.Response, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if said.State == protocol.Running && !h.group.Knows(who.UID) {
		return protocol.Response{Over: "the pod is being deleted"}, true, nil
	}
	response, says := h.group.Answer(who.UID)
	return response, says, nil
}

func (h *roundHall) close() {
	h.mu.Lock()
	h.timer.Stop()
	h.mu.Unlock()
	h.tell()
}
