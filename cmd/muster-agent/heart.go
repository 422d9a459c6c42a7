package main

import (
	"os"
	"time"
)

// heartbeatVariable names the file that a program touches to show that it gets on.
const heartbeatVariable = "LATTICE_HEARTBEAT_FILE"

// heart watches over a command that is to touch a file now and then. The kernel tells of
// changes of a file's time only to those who look, so it is looked at.
type heart struct {
	timeout time.Duration // 0: no one watches
	file    string
	ticker  *time.Ticker
}

func newHeart(timeout time.Duration) *heart { return &heart{timeout: timeout} }

// start begins to watch and gives the variables that tell the command of it.
func (h *heart) start() []string {
	if h.timeout <= 0 {
		return nil
	}
	file, err := os.CreateTemp("", "heartbeat-")
	if err != nil {
		logf("nobody watches whether the command hangs: %v", err)
		return nil
	}
	file.Close()
	h.file, h.ticker = file.Name(), time.NewTicker(max(h.timeout/4, 10*time.Millisecond))
	return []string{heartbeatVariable + "=" + h.file}
}

func (h *heart) stop() {
	if h.ticker != nil {
		h.ticker.Stop()
		os.Remove(h.file)
		h.ticker = nil
	}
}

// beat tells when to look.
func (h *heart) beat() <-chan time.Time {
	if h.ticker == nil {
		return nil
	}
	return h.ticker.C
}

// stopped reports whether the last sign of life is too long ago.
func (h *heart) stopped(now time.Time) bool {
	info, err := os.Stat(h.file)
	return err == nil && now.Sub(info.ModTime()) > h.timeout
}
