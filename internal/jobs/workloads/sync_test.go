package workloads

import "testing"

// TestSyncActions is the decision table of what is done about the Workload of a job.
func TestSyncActions(t *testing.T) {
	var (
		none     = syncCase{}
		own      = syncCase{exists: true, owned: true, wanted: true}
		prebuilt = syncCase{exists: true, prebuilt: true, named: true, wanted: true}
		taken    = syncCase{exists: true, owned: true, prebuilt: true, named: true, wanted: true}
	)
	for name, tc := range map[string]struct {
		of   syncCase
		but  func(*syncCase)
		want syncAction
	}{
		"a job without a Workload gets one": {none, nil, describe},
		"an ended job without a Workload is described, and asks nothing": {none,
			func(c *syncCase) { c.hasOutcome = true }, describe},
		"a mistaken job gets no Workload": {none, func(c *syncCase) { c.mistaken = true }, leave},
		"a paused job gets no Workload":   {none, func(c *syncCase) { c.idle = true }, giveBack},

		"a waiting or running job's Workload follows the job": {own, nil, describe},
		"an ended job's Workload says so":                     {own, func(c *syncCase) { c.hasOutcome = true }, describe},
		"a mistake changes nothing": {own,
			func(c *syncCase) { c.mistaken = true }, reportOnly},
		"a job that has no pods for now keeps its quota": {own, func(c *syncCase) { c.noPods = true }, reportOnly},
		"a paused job gives its Workload back":           {own, func(c *syncCase) { c.idle = true }, giveBack},
		"a paused job that has ended does not": {own,
			func(c *syncCase) { c.idle, c.hasOutcome = true, true }, describe},
		"a job that asks for other pods gives its Workload back": {own, func(c *syncCase) { c.requeues = true }, giveBack},
		"even if it is mistaken": {own,
			func(c *syncCase) { c.requeues, c.mistaken = true, true }, giveBack},
		"a job that names another Workload gives its own back": {own, func(c *syncCase) { c.wanted = false }, replace},
		"but not with quota":    {own, func(c *syncCase) { c.wanted, c.keepsQuota = false, true }, describe},
		"nor when it has ended": {own, func(c *syncCase) { c.wanted, c.hasOutcome = false, true }, describe},
		"a job whose Workload another job has taken is told so":   {prebuilt, nil, take},
		"a job that names a Workload that does not exist is told": {syncCase{prebuilt: true}, nil, take},
		"if it has ended, nothing is said": {syncCase{prebuilt: true},
			func(c *syncCase) { c.hasOutcome = true }, leave},
		"a mistaken job takes no Workload": {prebuilt,
			func(c *syncCase) { c.mistaken = true }, leave},
		"a paused job takes the Workload that it names":       {prebuilt, func(c *syncCase) { c.idle = true }, take},
		"a job keeps the Workload that it has taken":          {taken, nil, take},
		"the taken Workload of an ended job says so":          {taken, func(c *syncCase) { c.hasOutcome = true }, reportOnly},
		"a mistaken job keeps the Workload that it has taken": {taken, func(c *syncCase) { c.mistaken = true }, take},
		"a taken Workload that asks for other pods is out of sync": {taken, func(c *syncCase) { c.requeues = true },
			finishOutOfSync},
		"a taken Workload whose label is gone is given back": {taken,
			func(c *syncCase) { c.named, c.wanted = false, false }, replace},
		"but not while it has quota": {taken,
			func(c *syncCase) { c.named, c.wanted, c.keepsQuota = false, false, true }, take},
		"nor is it out of sync then": {taken,
			func(c *syncCase) { c.named, c.requeues, c.keepsQuota = false, true, true }, giveBack},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.of
			if tc.but != nil {
				tc.but(&c)
			}
			if got := c.action(); got != tc.want {
				t.Errorf("%+v: %s, want %s", c, got, tc.want)
			}
		})
	}
}
