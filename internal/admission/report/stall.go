package report

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/musterhq/muster/internal/metrics"
)

// stalledSeconds is computed when it is scraped, so that it also grows during a pass that does not end.
var stalledSeconds = metrics.NewGaugeDesc("muster_engine_stalled_seconds",
	"For how long the engine has had work to do without a decision, or a new reason for a job to wait; 0 while it rests.")

// Stall measures for how long the engine has been busy without a result. A long wait for events is no stall, nor is a
// long row of passes of which each decides something. It is a collector of stalledSeconds.
type Stall struct {
	clock clock.PassiveClock
	// since is the start of the first pass without a result after the engine last rested or decided, in nanoseconds
	// since 1970; 0 if there is none.
	since atomic.Int64
}

// ServedStall is the stall of this process' engine, while the process leads.
var ServedStall = &Stall{clock: clock.RealClock{}}

func init() { metrics.Serve(ServedStall) }

// Begin notes that a pass begins.
func (s *Stall) Begin(now time.Time) { s.since.CompareAndSwap(0, now.UnixNano()) }

// End notes how a pass ended: with some decisions or none, and with work left for the next pass or not.
func (s *Stall) End(decisions int, busy bool) {
	if decisions > 0 || !busy {
		s.since.Store(0)
	}
}

// seconds returns for how long the engine has been busy without a result. A clock that was set back counts as none.
func (s *Stall) seconds() float64 {
	since := s.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, s.clock.Since(time.Unix(0, since)).Seconds())
}

// Describe implements prometheus.Collector.
func (s *Stall) Describe(out chan<- *prometheus.Desc) { out <- stalledSeconds }

// Collect implements prometheus.Collector.
func (s *Stall) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(stalledSeconds, prometheus.GaugeValue, s.seconds())
}
