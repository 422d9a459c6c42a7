package engine

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
)

// wideWorld is the part of a world beyond cpu in one flavor: a second flavor, memory, a gpu group, and a tree of
// cohorts with limits at each node.
type wideWorld struct {
	cohorts []string
	// entangled is set if two pod sets of a job compete for quota. Victims are then searched only for the best flavor
	// of each pod set: usage of another workload can help the job by moving the first pod set out of the way of the
	// second.
	entangled bool
}

func (w *world) entangled() bool { return w.wide != nil && w.wide.entangled }

// newWideWorld returns a world below the cohort lab, which is above left and right.
func newWideWorld(t *rapid.T) *world {
	w := newWorld(t)
	w.wide = &wideWorld{cohorts: []string{"lab", "left", "right"}, entangled: rapid.Bool().Draw(t, "entangled")}
	w.apply(FlavorSet{Flavor{Name: "spot"}})
	for _, name := range w.wide.cohorts {
		w.setCohort(t, name)
	}
	for _, name := range queueNames {
		w.setWideQueue(t, name)
	}
	return w
}

// groups are the resource groups of each wide queue.
var groups = []flavor.Group{
	{Resources: []string{"cpu", "memory"}, Flavors: []string{"spot", "default"}},
	{Resources: []string{"gpu"}, Flavors: []string{"default"}},
}

func wideQuotas(t *rapid.T, of string) quota.Quotas {
	limit := rapid.OneOf(rapid.Just(quota.Unlimited), rapid.Just(quota.Unlimited), rapid.Int64Range(0, 6))
	out := quota.Quotas{}
	for _, g := range groups {
		for _, name := range g.Flavors {
			for _, resource := range g.Resources {
				out[quota.FlavorResource{Flavor: name, Resource: resource}] = quota.Limits{
					Nominal:   rapid.Int64Range(0, 6).Draw(t, fmt.Sprintf("%s of %s in %s", resource, of, name)),
					Borrowing: limit.Draw(t, of+" borrows"), Lending: limit.Draw(t, of+" lends")}
			}
		}
	}
	return out
}

func (w *world) setCohort(t *rapid.T, name string) {
	ev := CohortSet{Cohort{Name: name}}
	if name != "lab" {
		ev.Parent = "lab"
	}
	if rapid.Bool().Draw(t, name+" has quotas") {
		ev.Quotas = wideQuotas(t, name)
	}
	w.apply(ev)
}

func (w *world) setWideQueue(t *rapid.T, name string) {
	w.setQueue(t, name)
	q := w.queues[name]
	q.Cohort = rapid.SampledFrom(w.wide.cohorts).Draw(t, "cohort of "+name)
	q.Groups, q.Quotas = groups, wideQuotas(t, name)
	q.Fungibility = flavor.Fungibility{
		NextBeforeBorrowing:  rapid.Bool().Draw(t, name+" tries the next flavor before borrowing"),
		NextBeforePreempting: rapid.Bool().Draw(t, name+" tries the next flavor before preempting"),
	}
	if q.Fungibility.NextBeforeBorrowing && q.Fungibility.NextBeforePreempting {
		q.Fungibility.PreemptsRatherThanBorrows = rapid.Bool().Draw(t, name+" preempts rather than borrows")
	}
	if q.Preemption.WhileBorrowing && rapid.Bool().Draw(t, name+" has a threshold") {
		threshold := rapid.Int32Range(-1, 1).Draw(t, "threshold of "+name)
		q.Preemption.Threshold = &threshold
	}
	w.queues[name] = q
	w.apply(q)
}

// wideStep makes one random change that small worlds do not have.
func (w *world) wideStep(t *rapid.T) {
	switch kind := rapid.IntRange(0, 19).Draw(t, "kind of wide event"); {
	case kind < 17:
		w.submitWide(t)
	case kind < 19:
		w.setWideQueue(t, rapid.SampledFrom(queueNames).Draw(t, "reconfigured"))
	default:
		w.setCohort(t, rapid.SampledFrom(w.wide.cohorts).Draw(t, "reconfigured"))
	}
}

// submitWide creates a job of one or two pod sets.
func (w *world) submitWide(t *rapid.T) {
	name := fmt.Sprintf("j%03d", len(w.log))
	ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "queue"), 1, 0,
		rapid.Int32Range(-1, 1).Draw(t, "priority"), len(w.log))
	ev.PodSets = nil
	asks := [][]string{{"cpu", "memory"}, {"gpu"}}
	if w.wide.entangled {
		asks = [][]string{{"cpu", "memory", "gpu"}, {"cpu", "memory", "gpu"}}
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "pod sets") {
		ps := PodSet{Name: fmt.Sprintf("set-%d", i), Count: rapid.Int32Range(0, 3).Draw(t, "pods"),
			PerPod: map[string]int64{}}
		for _, resource := range asks[i] {
			if amount := rapid.Int64Range(-1, 3).Draw(t, resource); amount >= 0 {
				ps.PerPod[resource] = amount
			}
		}
		if rapid.Bool().Draw(t, "can start smaller") {
			ps.MinCount = min(1, ps.Count)
		}
		ev.PodSets = append(ev.PodSets, ps)
	}
	drawTogether(t, ev.PodSets)
	w.submit(t, ev)
}
