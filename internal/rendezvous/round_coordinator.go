package rendezvous

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// roundCoordinator coordinates a job that runs in rounds.
type roundCoordinator struct {
	broadcast
	// id is the ID of the rounds.
	id      string
	mu      sync.Mutex
	group   *round.Group
	timer   *time.Timer
	version uint64
	// sizedAt is the creation time of the pod whose sizes apply. The registry sets it, under its own lock.
	sizedAt time.Time
	// last is the serial of each pod's newest request, by pod UID.
	last map[string]uint64
}

func newRoundCoordinator(id string, least, most int, timeouts round.Timeouts) *roundCoordinator {
	c := &roundCoordinator{id: id, group: round.New(least, most, timeouts, time.Now()), last: map[string]uint64{}}
	c.timer = time.AfterFunc(time.Hour, func() { c.change(func(g *round.Group, now time.Time) { g.Tick(now) }) })
	c.timer.Stop()
	return c
}

// change applies a change to the group, and notifies held requests if answers may have changed.
func (r *roundCoordinator) change(what func(*round.Group, time.Time)) {
	r.mu.Lock()
	now := time.Now()
	what(r.group, now)
	version := r.group.Version()
	changed := version != r.version
	r.version = version
	if due := r.group.Due(now); due.IsZero() {
		r.timer.Stop()
	} else {
		r.timer.Reset(due.Sub(now))
	}
	r.mu.Unlock()
	if changed {
		r.notify()
	}
}

func (r *roundCoordinator) observe(agent caller, request protocol.Request, serial uint64) (known bool) {
	r.change(func(g *round.Group, now time.Time) {
		if serial < r.last[agent.UID] { // a newer request of the pod has replaced it
			known = g.Knows(agent.UID)
			return
		}
		if known = g.Observe(agent.UID, request, now); known {
			r.last[agent.UID] = serial
		}
	})
	return known
}

func (r *roundCoordinator) disconnected(agent caller, serial uint64) {
	r.change(func(g *round.Group, now time.Time) {
		if r.last[agent.UID] == serial {
			g.Disconnected(agent.UID, now)
		}
	})
}

// updatePod adds or updates a pod, which may have succeeded, and removes it if it is gone.
func (r *roundCoordinator) updatePod(pod round.Pod, succeeded, gone bool) {
	r.change(func(g *round.Group, now time.Time) {
		switch {
		case succeeded:
			g.AddSucceeded(pod, now)
		case !gone:
			g.AddPod(pod, now)
		}
	})
	if gone {
		r.removePod(pod.UID)
	}
}

func (r *roundCoordinator) removePod(uid string) {
	r.change(func(g *round.Group, now time.Time) {
		g.RemovePod(uid, now)
		delete(r.last, uid)
	})
}

func (r *roundCoordinator) resize(least, most int) {
	r.change(func(g *round.Group, now time.Time) { g.Resize(least, most, now) })
}

func (r *roundCoordinator) setTarget(pods int) {
	r.change(func(g *round.Group, now time.Time) { g.SetTarget(pods, now) })
}

func (r *roundCoordinator) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.group.Empty()
}

func (r *roundCoordinator) answer(_ context.Context, agent caller, request protocol.Request,
	_ uint64) (protocol.Response, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.State == protocol.Running && !r.group.Knows(agent.UID) {
		return protocol.Response{Over: "the pod is being deleted"}, true, nil
	}
	response, says := r.group.Answer(agent.UID)
	return response, says, nil
}

func (r *roundCoordinator) close() {
	r.mu.Lock()
	r.timer.Stop()
	r.mu.Unlock()
	r.notify()
}
