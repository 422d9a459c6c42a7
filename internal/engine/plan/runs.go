package plan

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/state"
)

// Runs keeps the calendars: which workloads run, and until when. A family has one if it plans starts, and the nodes
// have one if any family does.
type Runs struct {
	Workloads map[order.Key]*state.Workload
	OnNodes   *calendar.Calendar
	Learned   *durations.Learner
	// Now is the time of the present pass, Backfills says whether any family plans starts.
	Now       time.Time
	Backfills bool
	// Raised counts how often the limit of a running workload was raised.
	Raised int
}

// Forecast works out how long the workload runs, if it is not known yet.
func (r *Runs) Forecast(w *state.Workload) {
	if w.Forecast == (durations.Forecast{}) {
		bounds := w.ClusterQueue.Durations
		if w.Local != nil {
			bounds = w.Local.Durations.Within(bounds)
		}
		w.Forecast = durations.Of(&w.Time, bounds, r.Learned)
	}
}

// Forget forgets the forecasts of these workloads, as the bounds of their queue have changed, and makes those that are
// needed anew.
func (r *Runs) Forget(of func(*state.Workload) bool) {
	for _, w := range r.Workloads {
		if of(w) && w.Forecast != (durations.Forecast{}) {
			w.Forecast = durations.Forecast{}
			r.Keep(w, &w.Charged)
		}
	}
}

// Keep brings the calendars up to date with what the workload holds now; before is what was charged for it.
func (r *Runs) Keep(w *state.Workload, before *state.Charges) {
	if !r.Backfills {
		return
	}
	var family *state.Family
	if q := w.Charged.Queue; q != nil && w.Charged.Queue.Node != nil {
		family = q.Family
	}
	runs := w.Held != nil && !w.Leaving() || w.Nomination != nil
	if from := before.Queue; from != nil && from.Family != nil && from.Family != family {
		r.update(from.Family.Calendar, from.Family, w, false, true)
	}
	less := !slices.Equal(before.Planned, w.Charged.Planned)
	if family != nil {
		r.update(family.Calendar, family, w, runs && len(w.Charged.Planned) > 0, less)
	}
	r.update(r.OnNodes, nil, w, runs && family != nil && w.Placed.By != nil, less)
}

// update adds the workload to a calendar, or removes it. changed says that what it holds has changed. If it ran
// beyond a planned start of the family, there is more for others at that time.
func (r *Runs) update(c *calendar.Calendar, f *state.Family, w *state.Workload, runs, changed bool) {
	if c == nil {
		return
	}
	version := c.Version()
	defer func() {
		if f != nil && len(f.Reserved) > 0 && c.Version() != version {
			f.Enqueue() // its starts may change
		}
	}()
	was := c.Entry(w.Key)
	if was != nil && f != nil {
		crosses := slices.ContainsFunc(f.Reserved, func(planned *state.Reservation) bool {
			end := was.End(planned.By)
			return end.IsZero() || end.After(planned.At)
		})
		defer func() { f.SpareGrew = f.SpareGrew || crosses && (changed || c.Version() != version) }()
	}
	if !runs {
		c.Remove(w.Key)
		return
	}
	r.Forecast(w)
	c.Put(calendar.Entry{Key: w.Key, Forecast: w.Forecast, Since: w.StartedAt(), Reported: w.Time.Ends}, r.Now)
	if was != nil && c.Entry(w.Key).EndsLaterThan(was) {
		r.Raised++
	}
}

// Restart builds the calendars anew after families have changed. Those of the families in which starts are planned are
// new and empty.
func (r *Runs) Restart(families map[string]*state.Family) {
	r.Backfills, r.OnNodes = false, nil
	for _, f := range families {
		r.Backfills = r.Backfills || f.Backfills
	}
	if !r.Backfills {
		return
	}
	r.OnNodes = calendar.New()
	for _, w := range r.Workloads {
		r.Keep(w, &state.Charges{})
	}
}

// Refresh moves the expected ends that have moved by now.
func (r *Runs) Refresh(f *state.Family) {
	f.Calendar.Refresh(r.Now)
	r.OnNodes.Refresh(r.Now)
}
