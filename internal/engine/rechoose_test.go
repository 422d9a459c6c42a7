package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestMoreUsageCanLeadToFlavorsThatAllowPreemption: a workload is given memory of spot, which its queue would have to
// borrow, so that it may not reclaim the cpu that it lacks. When others have taken that memory, it is given its queue's
// own, and reclaims the cpu at once.
func TestMoreUsageCanLeadToFlavorsThatAllowPreemption(t *testing.T) {
	quotas := func(cpu, spot, reserved int64) quota.Quotas {
		out := quota.Quotas{}
		for fr, nominal := range map[quota.FlavorResource]int64{{Flavor: "default", Resource: "cpu"}: cpu,
			{Flavor: "spot", Resource: "memory"}: spot, {Flavor: "default", Resource: "memory"}: reserved} {
			out[fr] = quota.Limits{Nominal: nominal, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
		}
		return out
	}
	groups := []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"default"}}, {Resources: []string{"memory"}, Flavors: []string{"spot", "default"}}}
	owner, borrower := evicting(queueOf("owner", "lab", 0), preempt.Policy{Reclaim: preempt.Any}), queueOf("borrower", "lab", 0)
	owner.Groups, owner.Quotas = groups, quotas(3, 2, 3)
	borrower.Groups, borrower.Quotas = groups, quotas(0, 2, 0)
	needs := func(name, queue string, cpu, memory int64, at int) WorkloadSet {
		out := job(name, queue, 1, 1, 0, at)
		out.PodSets[0].PerPod = map[string]int64{"cpu": cpu, "memory": memory}
		return out
	}
	roomy := node("n", "a", 100)
	roomy.Allocatable["memory"] = 100
	for name, events := range map[string][]Event{
		"by quota alone": {FlavorSet{Flavor{Name: "spot"}}},
		"on nodes": {FlavorSet{Flavor{Name: "spot"}}, TopologySet{place.Topology{Name: "racks", Levels: []string{rack, place.Hostname}}},
			FlavorSet{Flavor{Name: "default", Topology: "racks"}}, roomy},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, append(events, owner, localOf("owner"), borrower, localOf("borrower"))...)
			s.want("another queue borrows all cpu", s.happens(needs("other", "borrower", 3, 0, 0)), "admit other in borrower")
			s.want("one that lacks cpu arrives", s.happens(needs("x", "owner", 1, 3, 1)), "x waits: WaitingForQuota")
			s.want("spot memory is taken", s.happens(needs("y", "owner", 0, 2, 2)),
				"admit y in owner", "evict other for x: reclaimed", "x waits: WaitingForPreemptedWorkloads")
		})
	}
}
