package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// ledgers converts what workloads hold, or are to hold, to amounts of the tree.
type ledgers struct{ tree *quota.Tree }

// vectorOf returns what the admission takes, including the surplus of terminating pods.
func (l *ledgers) vectorOf(a *Admission) quota.Vector {
	var amounts []quota.Amount
	for _, ps := range a.PodSets {
		for resource, amount := range ps.Usage {
			fr := quota.FlavorResource{Flavor: ps.Flavors[resource], Resource: resource}
			amounts = append(amounts, quota.Amount{Index: l.tree.Index(fr), Value: quota.Add(amount, ps.Surplus[resource])})
		}
	}
	return quota.VectorOf(amounts...)
}

// vectorOfPods returns what this number of pods of the assignment takes.
func (l *ledgers) vectorOfPods(a *Assignment, pods int32) quota.Vector {
	var amounts []quota.Amount
	for resource, amount := range model.PerPod(a) {
		fr := quota.FlavorResource{Flavor: a.Flavors[resource], Resource: resource}
		amounts = append(amounts, quota.Amount{Index: l.tree.Index(fr), Value: quota.Times(amount, pods)})
	}
	return quota.VectorOf(amounts...)
}

// plannedOf returns what the workload has once its surplus pods are gone and it has grown as planned.
func (l *ledgers) plannedOf(w *workload) quota.Vector {
	out := l.vectorOf(w.held)
	if w.held.HasSurplus() {
		lean := *w.held
		lean.PodSets = slices.Clone(lean.PodSets)
		for i := range lean.PodSets {
			lean.PodSets[i].Surplus = nil
		}
		out = l.vectorOf(&lean)
	}
	if len(w.growing) > 0 {
		out = quota.VectorOf(slices.Concat(out, w.growing)...)
	}
	return out
}

// setSpare sets how many pods the holder can do without, if its size may change.
func (l *ledgers) setSpare(w *workload, h *preempt.Holder) {
	if at := w.resizableSet(); at >= 0 && w.Admitted {
		set := &w.held.PodSets[at]
		h.Pod, h.Spare = l.vectorOfPods(set, 1), max(0, set.Count-w.leastOf(at))
	}
}

func (l *ledgers) named(all sums) map[quota.FlavorResource]int64 {
	out := make(map[quota.FlavorResource]int64, len(all))
	for i, sum := range all {
		out[l.tree.Name(i)] = sum.Value()
	}
	return out
}

// units sums up amounts by resource, across flavors.
func (l *ledgers) units(several ...sums) fair.Consumption {
	amounts := map[string]int64{}
	for _, all := range several {
		for i, sum := range all {
			resource := l.tree.Name(i).Resource
			amounts[resource] = quota.Add(amounts[resource], sum.Value())
		}
	}
	out := fair.Consumption{}
	for resource, amount := range amounts {
		out[resource] = float64(amount)
		if resource == string(corev1.ResourceCPU) {
			out[resource] /= 1000
		}
	}
	return out
}

// fits reports whether the amounts are free now.
func fits(n *quota.Node, v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return n.Available(quota.Held, a.Index) < a.Value })
}

// replicasFree returns how many times the amounts fit, now and in the planned ledger.
func replicasFree(n *quota.Node, v quota.Vector) int64 {
	most := replicasPlanned(n, v)
	for _, a := range v {
		if a.Value > 0 {
			most = min(most, n.Available(quota.Held, a.Index)/a.Value)
		}
	}
	return max(0, most)
}

// replicasPlanned returns how many times the amounts fit in the planned ledger.
func replicasPlanned(n *quota.Node, v quota.Vector) int64 {
	most := int64(1) << 31
	for _, a := range v {
		if a.Value > 0 {
			most = min(most, n.Available(quota.Planned, a.Index)/a.Value)
		}
	}
	return max(0, most)
}

// vectorOfSums converts the sums to a vector.
func vectorOfSums(sums map[quota.Index]int64) quota.Vector {
	amounts := make([]quota.Amount, 0, len(sums))
	for index, value := range sums {
		amounts = append(amounts, quota.Amount{Index: index, Value: value})
	}
	return quota.VectorOf(amounts...)
}
