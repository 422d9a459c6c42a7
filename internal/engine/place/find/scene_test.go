package find

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	corev1 "k8s.io/api/core/v1"
)

// finding is a Map with a Finder of places in it.
type finding struct {
	*place.Map
	*Finder
}

func newFinding() *finding {
	m := place.New()
	return &finding{m, New(m)}
}

// scene is a map with racks a and b in block x and rack c in block y, each of two nodes with 4 GPUs: a1,
// a2, b1 and so on.
type scene struct {
	*finding
	t *testing.T
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{newFinding(), t}
	s.SetTopology(place.Topology{Name: "t", Levels: []string{"block", "rack", place.Hostname}})
	s.SetTopology(place.Topology{Name: "flat", Levels: []string{place.Hostname}})
	s.SetFlavor(place.Flavor{Name: "f", Topology: "t"})
	s.SetFlavor(place.Flavor{Name: "flat", Topology: "flat"})
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
		s.node(name)
	}
	return s
}

// node sets a node, with changes to its default.
func (s *scene) node(name string, changes ...func(*place.Node)) *scene {
	block := map[byte]string{'a': "x", 'b': "x"}[name[0]]
	if block == "" {
		block = "y"
	}
	n := place.Node{Name: name, Labels: map[string]string{"block": block, "rack": name[:1], place.Hostname: name},
		Allocatable: map[string]int64{place.Pods: 10, "cpu": 8000, "gpu": 4}}
	for _, change := range changes {
		change(&n)
	}
	s.SetNode(n)
	return s
}

func tainted(effect corev1.TaintEffect) func(*place.Node) {
	return func(n *place.Node) { n.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}} }
}

func labeled(key, value string) func(*place.Node) {
	return func(n *place.Node) {
		if n.Labels[key] = value; value == "" {
			delete(n.Labels, key)
		}
	}
}

func has(resource string, amount int64) func(*place.Node) {
	return func(n *place.Node) {
		n.Allocatable = maps.Clone(n.Allocatable)
		if n.Allocatable[resource] = amount; amount < 0 {
			delete(n.Allocatable, resource)
		}
	}
}

func cordoned(n *place.Node) { n.Cordoned = true }
func failed(n *place.Node)   { n.Failed = true }

// pod sets a pod of another owner on a node, with a number of GPUs. One that is exclusive belongs to a job that was
// admitted so, without places of its own.
func (s *scene) pod(name, node string, each int64, changes ...func(*place.Pod)) *scene {
	p := place.Pod{Key: key(name), Node: node, Requests: map[string]int64{"gpu": each}}
	for _, change := range changes {
		change(&p)
	}
	if p.ExclusiveKey != "" && p.PodSet == "" {
		of("job-of-"+name, "main")(&p)
		s.hold("job-of-"+name, gpus(1, each, exclusive(p.ExclusiveKey)), "")
	}
	s.SetPod(p)
	return s
}

func of(workload, podSet string) func(*place.Pod) {
	return func(p *place.Pod) { p.Workload, p.PodSet = key(workload), podSet }
}

// job makes a pod one of two equal Jobs of a pod set.
func job(index int32) func(*place.Pod) {
	return func(p *place.Pod) { p.Part = place.Part{Index: index, Of: 2} }
}

// ranked gives a pod ranks that do not follow from its index.
func ranked(from, to int32) func(*place.Pod) {
	return func(p *place.Pod) { p.Part = place.Part{From: from, To: to, Index: 7, Of: 9} }
}

// gpus asks for a number of pods with some GPUs each.
func gpus(pods int32, each int64, changes ...func(*place.Ask)) place.Ask {
	a := place.Ask{PodSet: "main", Flavor: "f", Count: pods, PerPod: map[string]int64{"gpu": each}}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func required(level string) func(*place.Ask) {
	return func(a *place.Ask) { a.Level, a.Mandatory = level, true }
}
func preferred(level string) func(*place.Ask) { return func(a *place.Ask) { a.Level = level } }
func sliced(level string, size int32) func(*place.Ask) {
	return func(a *place.Ask) { a.Slices = append(a.Slices, place.Slice{Level: level, Size: size}) }
}
func exclusive(label string) func(*place.Ask) { return func(a *place.Ask) { a.ExclusiveKey = label } }
func grouped(podSet, group string) func(*place.Ask) {
	return func(a *place.Ask) { a.PodSet, a.Group = podSet, group }
}

// hold sets the places of a workload, written as "a1:2 b1:1".
func (s *scene) hold(workload string, a place.Ask, places string, changes ...func(*place.Holding)) *scene {
	set := place.HeldPodSet{Ask: a}
	for _, at := range strings.Fields(places) {
		name, count, _ := strings.Cut(at, ":")
		var n int32
		if _, err := fmt.Sscan(count, &n); err != nil {
			s.t.Fatal(err)
		}
		set.Nodes = append(set.Nodes, place.NodeCount{Node: name, Count: n})
	}
	h := &place.Holding{PodSets: []place.HeldPodSet{set}}
	for _, change := range changes {
		change(h)
	}
	s.Hold(key(workload), h)
	return s
}

func leaving(h *place.Holding)   { h.Leaving = true }
func nominated(h *place.Holding) { h.Nominated = true }

func unpinned(a *place.Ask) { a.Unpinned = true }

// choosing adds a node affinity for a label.
func choosing(label string, values ...string) func(*place.Ask) {
	return func(a *place.Ask) {
		only := corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values}
		if a.Affinity == nil {
			a.Affinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}}
		}
		term := &a.Affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
		term.MatchExpressions = append(term.MatchExpressions, only)
	}
}

// labeledFor makes pods unpinned, on nodes that users label for their job.
func labeledFor(label string, values ...string) func(*place.Ask) {
	return func(a *place.Ask) {
		unpinned(a)
		choosing(label, values...)(a)
	}
}
func terminating(p *place.Pod) { p.Terminating = true }

// find returns the places of the asks as "a1:2 b1:1 | c1:1", or the message of the shortfall.
func (s *scene) find(on place.Ledger, asks ...place.Ask) string {
	placed, short := s.Find(asks, on)
	if short != nil {
		return short.Message()
	}
	return written(placed)
}

func written(placed []place.Assignment) string {
	var sets []string
	for _, a := range placed {
		var nodes []string
		for _, n := range a.Nodes {
			nodes = append(nodes, fmt.Sprintf("%s:%d", n.Node, n.Count))
		}
		sets = append(sets, strings.Join(nodes, " "))
	}
	return strings.Join(sets, " | ")
}

func (s *scene) invalid() string {
	var out []string
	for _, key := range s.TakeInvalid() {
		out = append(out, key.Name)
	}
	return strings.Join(out, " ")
}

func (s *scene) repair(workload string) string {
	repaired, ok := s.Repair(key(workload))
	if !ok {
		return "none"
	}
	return fmt.Sprintf("%s, %d moved", written(repaired.Assignments), repaired.Moved)
}
