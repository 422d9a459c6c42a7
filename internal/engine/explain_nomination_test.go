package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
)

// copied returns another world in the same state.
func (w *world) copied() *world {
	out := *w
	out.engine = w.newEngine()
	for _, entry := range w.log {
		if entry.event != nil {
			out.engine.Apply(entry.event)
		} else {
			decideAll(out.engine, entry.decidedAt)
		}
	}
	out.log, out.decided, out.open = slices.Clone(w.log), nil, slices.Clone(w.open)
	out.jobs, out.reasons = maps.Clone(w.jobs), maps.Clone(w.reasons)
	if w.nodes != nil {
		out.nodes = &nodeWorld{nodes: maps.Clone(w.nodes.nodes), pods: maps.Clone(w.nodes.pods)}
	}
	return &out
}

// calm completes what is in progress as settle does, but no time passes. It returns whether the job was admitted, and
// what was decided for others than the job before it held quota.
func (w *world) calm(t *rapid.T, of Key) (admitted bool, forOthers []Decision) {
	for range 50 {
		decided := w.decideNow()
		for _, d := range decided {
			admitted = admitted || d.Key == of && d.Admit != nil
			if d.Key != of && d.Why.Code == reason.None && w.engine.workloads[of].Held == nil {
				forOthers = append(forOthers, d)
			}
		}
		if len(decided) == 0 && len(w.open) == 0 && !w.leaving() {
			return admitted, forOthers
		}
		for len(w.open) > 0 {
			w.write(0, accepted)
		}
		w.settlePods()
		for _, name := range w.names() {
			w.observe(name)
		}
	}
	return admitted, forOthers
}

// end removes the jobs from the world, and their pods.
func (w *world) end(names ...string) {
	for _, name := range names {
		if job, there := w.jobs[name]; there {
			w.apply(WorkloadGone{job.Key})
			delete(w.jobs, name)
		}
	}
	w.settlePods()
}

// TestWorkloadFitsAfterTheEndsThatAreNamed: if the workloads end after whose end another would fit, as is said of it,
// it is admitted, unless others are given something before it. What happens then does not count: a running one of
// higher priority in its queue may stop it when others grow into what that one is to grow into.
func TestWorkloadFitsAfterTheEndsThatAreNamed(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		var waiting []Key
		for key, j := range w.engine.workloads {
			if j.Class != nil || j.Nomination != nil {
				waiting = append(waiting, key)
			}
		}
		if len(waiting) == 0 {
			return
		}
		slices.SortFunc(waiting, order.CompareKeys)
		of := rapid.SampledFrom(waiting).Draw(t, "explained")
		w = w.copied()
		if rapid.Bool().Draw(t, "no other waits") {
			for _, key := range waiting {
				if key != of {
					w.end(key.Name)
				}
			}
			w.calm(t, of)
		}
		x, _ := w.engine.Explain(of)
		for _, h := range x.Holders {
			if w.engine.workloads[Key(h.Name)].Charged.Held == nil && w.engine.workloads[Key(h.Name)].Charged.Planned == nil {
				t.Fatalf("%s holds nothing, but is named as a holder for %s: %+v", h.Name, of, x)
			}
		}
		if x.State == reason.Waiting && x.Behind == nil && x.Code != reason.WaitingForPodsReady && w.wide == nil &&
			len(x.WouldPreempt)+len(x.WouldShrink) == 0 {
			if f := x.PodSets[0].Flavors; len(f) == 1 && f[0].Fit == reason.FitsByPreemption {
				w.describe(t)
				t.Fatalf("%s is said to fit by preemption of %v, but waits: %+v", of, f[0].WouldPreempt, x)
			}
		}
		if x.State != reason.Waiting || x.Behind != nil || x.Code == reason.WaitingForPodsReady || len(x.WouldFitAfter) == 0 {
			return
		}
		for _, name := range x.WouldFitAfter {
			w.end(name.Name)
		}
		admitted, forOthers := w.calm(t, of)
		if admitted || len(forOthers) > 0 {
			return
		}
		again, _ := w.engine.Explain(of)
		w.describe(t)
		t.Fatalf("%s is not admitted after the end of %v, as was said: %+v\nbut: %s %s %+v", of, x.WouldFitAfter, x,
			again.Code, again.Message, again)
	})
}

// TestEndsThatAreNamedSufficeOnNodes: after the end of one workload there would be quota, but only after the end of
// both that are on the nodes would these have capacity; or nodes alone are short.
func TestEndsThatAreNamedSufficeOnNodes(t *testing.T) {
	for name, quota := range map[string]int64{"quota is short too": 12, "nodes alone are short": 20} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{},
				slices.Concat(onNodes, []Event{queueOf("q", "", quota), localOf("q"), node("a1", "a", 4), node("a2", "a", 4),
					job("a", "q", 1, 4, 0, 0), job("b", "q", 1, 4, 0, 1), job("x", "q", 2, 3, 0, 2)})...)
			x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
			want := []reason.Name{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}}
			if diff := cmp.Diff(want, x.WouldFitAfter); diff != "" {
				t.Errorf("would fit after (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEndsInOneRackAreNamed: a workload that requires one rack fits after the end of those in one, and no other is
// named.
func TestEndsInOneRackAreNamed(t *testing.T) {
	apart := job("x", "q", 2, 4, 0, 4)
	apart.PodSets[0].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 40), localOf("q"),
		node("a1", "a", 4), node("a2", "a", 4), node("b1", "b", 4), node("b2", "b", 4),
		job("w1", "q", 1, 3, 0, 0), job("w2", "q", 1, 3, 0, 1), job("w3", "q", 1, 3, 0, 2),
		job("w4", "q", 1, 3, 0, 3), apart})...)
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	racks := map[string]bool{}
	for _, name := range x.WouldFitAfter {
		value, _ := s.engine.nodes.Places.LabelOf(s.engine.workloads[Key(name)].Held.PodSets[0].Places[0].Node, rack)
		racks[value] = true
	}
	if len(x.WouldFitAfter) != 2 || len(racks) != 1 {
		t.Errorf("would fit after %v in %v, want the two workloads of one rack", x.WouldFitAfter, racks)
	}
}

// TestNoPreemptionIsSaidToHelpWhereNodesAreTooSmall: the rules allow to evict others for the quota, but the nodes could
// not hold the workload even without them.
func TestNoPreemptionIsSaidToHelpWhereNodesAreTooSmall(t *testing.T) {
	s := newScene(t, Options{},
		slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 6), lower), localOf("q"), node("a1", "a", 4),
			node("b1", "b", 2), job("low", "q", 1, 1, 0, 0), job("x", "q", 2, 3, 5, 1)})...)
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "x"})
	if f := x.PodSets[0].Flavors[0]; f.Fit != reason.Short || len(f.WouldPreempt) > 0 || len(x.WouldFitAfter) > 0 {
		t.Errorf("flavor %s by preemption of %v, after the end of %v; want that nothing is said to help", f.Fit,
			f.WouldPreempt, x.WouldFitAfter)
	}
}

// relaxed returns the pod set after the change that a diagnosis names.
func relaxed(ps PodSet, change string) (out PodSet, known bool) {
	out = ps
	topology := flavor.TopologyRequest{}
	if ps.Topology != nil {
		topology = *ps.Topology
	}
	var amount, before int64
	var level string
	change = strings.TrimPrefix(change, `pod set "main" `)
	switch {
	case strings.HasSuffix(change, " preferred, not required"):
		topology.Mandatory = false
		out.Topology = &topology
	case strings.HasPrefix(change, "without exclusive placement by "):
		topology.Slices = nil
		out.Topology, out.ExclusiveKey = &topology, ""
	case change == "without podAntiAffinity by kubernetes.io/hostname":
		out.Bounds = nil
	case change == "without slices":
		topology.Slices = nil
		out.Topology = &topology
	case change == "without cpu":
		out.PerPod = map[string]int64{}
	case scans(change, "with %dm cpu for each pod rather than %dm", &amount, &before):
		out.PerPod = map[string]int64{"cpu": amount}
	case scans(change, "with %d pod rather than %d", &amount, &before),
		scans(change, "with %d pods rather than %d", &amount, &before):
		out.Count, out.Reclaimable, out.MinCount, out.Together = int32(amount), 0, 0, 0
	case scans(change, "within one %s rather than one", &level):
		topology.Level = level
		out.Topology = &topology
	default:
		return ps, false
	}
	return out, true
}

func scans(text, format string, into ...any) bool {
	n, _ := fmt.Sscanf(text, format, into...)
	return n == len(into)
}

// TestWorkloadHasPlacesAfterTheChangeThatIsNamed: if a workload asks for what is said to help instead, nodes have
// capacity for it, and it is admitted if there is quota, unless others are given something before it.
func TestWorkloadHasPlacesAfterTheChangeThatIsNamed(t *testing.T) {
	checkOnNodes(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		for _, name := range w.names() {
			of := w.jobs[name].Key
			x, _ := w.engine.Explain(of)
			if x.State != reason.Waiting || len(x.PodSets[0].Flavors) != 1 {
				continue
			}
			f := x.PodSets[0].Flavors[0]
			if f.Nodes == nil || f.Nodes.Relaxation == "" {
				continue
			}
			after := w.copied()
			job := after.jobs[name]
			ps, known := relaxed(job.PodSets[0], f.Nodes.Relaxation)
			if !known {
				t.Fatalf("%s would fit %s: the test does not know this change", of, f.Nodes.Relaxation)
			}
			job.PodSets = []PodSet{ps}
			job.Version++
			job.Generation++
			after.jobs[name] = job
			after.apply(job)
			after.engine.Arrange(after.engine.growths.Now)
			again, _ := after.engine.Explain(of)
			if len(again.PodSets[0].Flavors) == 0 { // its queue is evaluated next
				continue
			}
			if nodes := again.PodSets[0].Flavors[0].Nodes; nodes != nil && !nodes.Fits {
				w.describe(t)
				t.Fatalf("%s is said to have places %s, but has none then: %+v", of, f.Nodes.Relaxation, nodes)
			}
			admitted, forOthers := after.calm(t, of)
			if f.Fit == reason.Fits && x.Behind == nil &&
				(x.Code == reason.TopologyPlacementFailed || x.Code == reason.ExceedsNodes) && len(forOthers) == 0 && !admitted {
				last, _ := after.engine.Explain(of)
				if last.Code != reason.WaitingForPodsReady && last.Code != reason.BehindReservation && last.Behind == nil {
					w.describe(t)
					t.Fatalf("%s is not admitted %s, as was said, but waits: %s %s", of, f.Nodes.Relaxation, last.Code, last.Message)
				}
			}
			return
		}
	})
}
