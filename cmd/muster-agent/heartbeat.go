package main

import (
	"os"
	"time"
)

// heartbeatVariable is the variable with the path of the file that the program touches to show that it makes progress.
const heartbeatVariable = "LATTICE_HEARTBEAT_FILE"

// heartbeat monitors the heartbeat file of a command by polling its modification time.
type heartbeat struct {
	timeout time.Duration // 0: disabled
	file    string
	ticker  *time.Ticker
}

func newHeartbeat(timeout time.Duration) *heartbeat { return &heartbeat{timeout: timeout} }

// start starts monitoring and returns the variables for the command's environment.
func (h *heartbeat) start() []string {
	if h.timeout <= 0 {
		return nil
	}
	file, err := os.CreateTemp("", "heartbeat-")
	if err != nil {
		logf("cannot detect whether the command hangs: %v", err)
		return nil
	}
	file.Close()
	h.file, h.ticker = file.Name(), time.NewTicker(max(h.timeout/4, 10*time.Millisecond))
	return []string{heartbeatVariable + "=" + h.file}
}

func (h *heartbeat) stop() {
	if h.ticker != nil {
		h.ticker.Stop()
		os.Remove(h.file)
		h.ticker = nil
	}
}

// due returns a channel that receives when stopped should be called; nil if monitoring is off.
func (h *heartbeat) due() <-chan time.Time {
	if h.ticker == nil {
		return nil
	}
	return h.ticker.C
}

// stopped reports whether the last heartbeat is older than the timeout.
func (h *heartbeat) stopped(now time.Time) bool {
	info, err := os.Stat(h.file)
	return err == nil && now.Sub(info.ModTime()) > h.timeout
}
