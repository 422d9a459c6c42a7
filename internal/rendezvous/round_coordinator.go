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
func (c *roundCoordinator) change(what func(*round.Group, time.Time)) {
	c.mu.Lock()
	now := time.Now()
	what(c.group, now)
	version := c.group.Version()
	changed := version != c.version
	c.version = version
	if due := c.group.Due(now); due.IsZero() {
		c.timer.Stop()
	} else {
		c.timer.Reset(due.Sub(now))
	}
	c.mu.Unlock()
	if changed {
		c.notify()
	}
}

func (c *roundCoordinator) observe(agent caller, request protocol.Request, serial uint64) (known bool) {
	c.change(func(g *round.Group, now time.Time) {
		if serial < c.last[agent.UID] { // a newer request of the pod has replaced it
			known = g.Knows(agent.UID)
			return
		}
		if known = g.Observe(agent.UID, request, now); known {
			c.last[agent.UID] = serial
		}
	})
	return known
}

func (c *roundCoordinator) disconnected(agent caller, serial uint64) {
	c.change(func(g *round.Group, now time.Time) {
		if c.last[agent.UID] == serial {
			g.Disconnected(agent.UID, now)
		}
	})
}

// updatePod adds or updates a pod, which may have succeeded, and removes it if it is gone.
func (c *roundCoordinator) updatePod(pod round.Pod, succeeded, gone bool) {
	c.change(func(g *round.Group, now time.Time) {
		switch {
		case succeeded:
			g.AddSucceeded(pod, now)
		case !gone:
			g.AddPod(pod, now)
		}
	})
	if gone {
		c.removePod(pod.UID)
	}
}

func (c *roundCoordinator) removePod(uid string) {
	c.change(func(g *round.Group, now time.Time) {
		g.RemovePod(uid, now)
		delete(c.last, uid)
	})
}

func (c *roundCoordinator) resize(least, most int) {
	c.change(func(g *round.Group, now time.Time) { g.Resize(least, most, now) })
}

func (c *roundCoordinator) setTarget(pods int) {
	c.change(func(g *round.Group, now time.Time) { g.SetTarget(pods, now) })
}

func (c *roundCoordinator) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.group.Empty()
}

func (c *roundCoordinator) answer(_ context.Context, agent caller, request protocol.Request, _ uint64) (protocol.Response, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request.State == protocol.Running && !c.group.Knows(agent.UID) {
		return protocol.Response{Over: "the pod is being deleted"}, true, nil
	}
	response, says := c.group.Answer(agent.UID)
	return response, says, nil
}

func (c *roundCoordinator) close() {
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
	c.notify()
}
