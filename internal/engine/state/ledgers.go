package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Ledgers converts what workloads hold, or are to hold, to amounts of the tree.
type Ledgers struct{ Tree *quota.Tree }

// VectorOf returns what the admission takes, including the surplus of terminating pods.
func (l *Ledgers) VectorOf(a *model.Admission) quota.Vector {
	var amounts []quota.Amount
	for _, ps := range a.PodSets {
		for resource, amount := range ps.Usage {
			fr := quota.FlavorResource{Flavor: ps.Flavors[resource], Resource: resource}
			amounts = append(amounts, quota.Amount{Index: l.Tree.Index(fr), Value: quota.Add(amount, ps.Surplus[resource])})
		}
	}
	return quota.VectorOf(amounts...)
}

// VectorOfPods returns what this number of pods of the assignment takes.
func (l *Ledgers) VectorOfPods(a *flavor.Assignment, pods int32) quota.Vector {
	var amounts []quota.Amount
	for resource, amount := range model.PerPod(a) {
		fr := quota.FlavorResource{Flavor: a.Flavors[resource], Resource: resource}
		amounts = append(amounts, quota.Amount{Index: l.Tree.Index(fr), Value: quota.Times(amount, pods)})
	}
	return quota.VectorOf(amounts...)
}

// PlannedOf returns what the workload has once its surplus pods are gone and it has grown as planned.
func (l *Ledgers) PlannedOf(w *Workload) quota.Vector {
	out := l.VectorOf(w.Held)
	if w.Held.HasSurplus() {
		lean := *w.Held
		lean.PodSets = slices.Clone(lean.PodSets)
		for i := range lean.PodSets {
			lean.PodSets[i].Surplus = nil
		}
		out = l.VectorOf(&lean)
	}
	if len(w.Growing) > 0 {
		out = quota.VectorOf(slices.Concat(out, w.Growing)...)
	}
	return out
}

// SetSpare sets how many pods the holder can do without, if its size may change.
func (l *Ledgers) SetSpare(w *Workload, h *preempt.Holder) {
	if at := w.ResizableSet(); at >= 0 && w.Admitted {
		set := &w.Held.PodSets[at]
		h.Pod, h.Spare = l.VectorOfPods(set, 1), max(0, set.Count-w.LeastOf(at))
	}
}

// Named returns the sums by flavor and resource.
func (l *Ledgers) Named(all sums) map[quota.FlavorResource]int64 {
	out := make(map[quota.FlavorResource]int64, len(all))
	for i, sum := range all {
		out[l.Tree.Name(i)] = sum.Value()
	}
	return out
}

// Units sums up amounts by resource, across flavors.
func (l *Ledgers) Units(several ...sums) fair.Consumption {
	amounts := map[string]int64{}
	for _, all := range several {
		for i, sum := range all {
			resource := l.Tree.Name(i).Resource
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

// Fits reports whether the amounts are free now.
func Fits(n *quota.Node, v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return n.Available(quota.Held, a.Index) < a.Value })
}

// ReplicasFree returns how many times the amounts fit, now and in the planned ledger.
func ReplicasFree(n *quota.Node, v quota.Vector) int64 {
	return min(replicas(n, quota.Held, v), replicas(n, quota.Planned, v))
}

// ReplicasPlanned returns how many times the amounts fit in the planned ledger.
func ReplicasPlanned(n *quota.Node, v quota.Vector) int64 { return replicas(n, quota.Planned, v) }

func replicas(n *quota.Node, l quota.Ledger, v quota.Vector) int64 {
	most := int64(1) << 31
	for _, a := range v {
		if a.Value > 0 {
			most = min(most, n.Available(l, a.Index)/a.Value)
		}
	}
	return max(0, most)
}

// VectorOfSums converts the sums to a vector.
func VectorOfSums(sums map[quota.Index]int64) quota.Vector {
	amounts := make([]quota.Amount, 0, len(sums))
	for index, value := range sums {
		amounts = append(amounts, quota.Amount{Index: index, Value: value})
	}
	return quota.VectorOf(amounts...)
}
