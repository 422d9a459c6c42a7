package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// deserving returns a queue of the cohort lab that deserves so much, and of the other resources does not say how much.
func deserving(name string, deserved map[string]int64) ClusterQueueSet {
	q := queueOf(name, "lab", 0)
	q.Preemption = preempt.Policy{Reclaim: preempt.Any, WithinQueue: preempt.LowerPriority}
	q.Fungibility = flavor.Fungibility{NextBeforePreempting: true}
	q.Groups = []flavor.Group{{Resources: []string{"cpu", "memory", "gpu", "pods"}, Flavors: []string{"default"}}}
	q.Quotas = quota.Quotas{}
	for _, resource := range q.Groups[0].Resources {
		q.Quotas[quota.FlavorResource{Flavor: "default", Resource: resource}] = quota.Limits{
			Nominal: deserved[resource], Borrowing: quota.Unlimited, Lending: quota.Unlimited, Unnamed: deserved[resource] == 0}
	}
	return q
}

// asking returns a workload of so many pods with these requests.
func asking(name, queue string, pods int32, perPod map[string]int64, second int) WorkloadSet {
	w := job(name, queue, pods, 0, 0, second)
	w.PodSets[0].PerPod = perPod
	return w
}

// TestWhatAQueueDoesNotNameIsNotBorrowed: a workload within what its queue deserves reclaims, whatever it takes of
// resources of which the queue does not say what it deserves.
func TestWhatAQueueDoesNotNameIsNotBorrowed(t *testing.T) {
	shared := func(amounts map[string]int64) CohortSet {
		c := cohortOf("lab", "", 0)
		for resource, amount := range amounts {
			c.Quotas[quota.FlavorResource{Flavor: "default", Resource: resource}] = quota.Limits{Nominal: amount, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
		}
		return c
	}
	cpu := func(n int64) map[string]int64 { return map[string]int64{"cpu": n} }
	for name, tc := range map[string]struct {
		cluster, owner, other map[string]int64
		borrowed, asked       map[string]int64
		pods                  int32
		want                  []string
	}{
		"pods": {map[string]int64{"pods": 100}, cpu(8), cpu(2), cpu(5), cpu(5), 2,
			[]string{"evict b for a: reclaimed", "a waits: WaitingForPreemptedWorkloads"}},
		"memory that is free": {map[string]int64{"pods": 100, "memory": 100}, cpu(8), cpu(2),
			map[string]int64{"cpu": 5, "memory": 5}, map[string]int64{"cpu": 5, "memory": 5}, 2,
			[]string{"evict b for a: reclaimed", "a waits: WaitingForPreemptedWorkloads"}},
		"memory that is short too": {map[string]int64{"pods": 100, "memory": 10}, cpu(8), cpu(2),
			map[string]int64{"cpu": 5, "memory": 5}, map[string]int64{"cpu": 5, "memory": 5}, 2,
			[]string{"evict b for a: reclaimed", "a waits: WaitingForPreemptedWorkloads"}},
		"it names two resources": {map[string]int64{"pods": 100}, map[string]int64{"cpu": 8, "memory": 8}, map[string]int64{"cpu": 2, "memory": 2},
			map[string]int64{"cpu": 5, "memory": 5}, map[string]int64{"cpu": 5, "memory": 5}, 2,
			[]string{"evict b for a: reclaimed", "a waits: WaitingForPreemptedWorkloads"}},
		"a queue that names nothing is reclaimed from": {map[string]int64{"pods": 100}, map[string]int64{"gpu": 8}, nil,
			map[string]int64{"cpu": 0, "gpu": 4}, map[string]int64{"gpu": 4}, 2,
			[]string{"evict b for a: reclaimed", "a waits: WaitingForPreemptedWorkloads"}},
		"more than the queue deserves": {map[string]int64{"pods": 100, "cpu": 2}, cpu(8), cpu(2), cpu(6), cpu(9), 2,
			[]string{"a waits: WaitingForQuota"}},
		"a queue that names nothing reclaims nothing": {map[string]int64{"pods": 100, "cpu": 10}, nil, nil, cpu(5), cpu(5), 2,
			[]string{"a waits: WaitingForQuota"}},
		"what is short is named by neither, and the other is within what it deserves": {map[string]int64{"pods": 100, "gpu": 8}, cpu(8), cpu(8),
			map[string]int64{"cpu": 1, "gpu": 4}, map[string]int64{"cpu": 1, "gpu": 4}, 2,
			[]string{"a waits: WaitingForQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, shared(tc.cluster), deserving("owner", tc.owner), deserving("other", tc.other), localOf("owner"), localOf("other"))
			s.want("the other queue borrows", s.happens(asking("b", "other", tc.pods, tc.borrowed, 0)), "admit b in other")
			s.want("the owner's job", s.happens(asking("a", "owner", 1, tc.asked, 1)), tc.want...)
		})
	}
}

// TestWorkloadsWithinWhatTheirQueueNamesComeFirst: such a workload does not rank behind one that borrows less because of
// a resource that its queue does not name.
func TestWorkloadsWithinWhatTheirQueueNamesComeFirst(t *testing.T) {
	lab := cohortOf("lab", "", 0)
	for _, resource := range []string{"cpu", "pods"} {
		lab.Quotas[quota.FlavorResource{Flavor: "default", Resource: resource}] = quota.Limits{Nominal: 3, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	}
	s := newScene(t, Options{}, lab, deserving("owner", map[string]int64{"cpu": 2}), deserving("other", nil), localOf("owner"), localOf("other"))
	s.want("both arrive", s.happens(asking("b", "other", 1, map[string]int64{"cpu": 4}, 0), asking("a", "owner", 1, map[string]int64{"cpu": 2}, 1)),
		"admit a in owner", "b waits: WaitingForQuota")
}
