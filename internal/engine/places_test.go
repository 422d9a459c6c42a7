package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

const rack = "example.com/rack"

// OnNodes declares the flavor default, whose pods are placed by racks and nodes.
var onNodes = []Event{
	FlavorSet{Flavor{Name: "default", Topology: "racks"}},
	TopologySet{place.Topology{Name: "racks", Levels: []string{rack, place.Hostname}}},
}

// node returns a node of a rack with this amount of cpu.
func node(name, of string, cpu int64) NodeSet {
	return NodeSet{place.Node{Name: name, Labels: map[string]string{rack: of, place.Hostname: name},
		Allocatable: map[string]int64{"cpu": cpu, place.Pods: 10}}}
}

// failed and cordoned return the node in that state.
func failed(n NodeSet) NodeSet   { n.Failed = true; return n }
func cordoned(n NodeSet) NodeSet { n.Cordoned = true; return n }

// within requires all pods of the job to be in one rack.
func within(w WorkloadSet) WorkloadSet {
	w.PodSets = slices.Clone(w.PodSets)
	w.PodSets[0].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
	return w
}

// pod returns the n-th pod of a job, bound to a node; of no job if job is "".
func pod(job string, n int, on string, cpu int64) PodBound {
	p := place.Pod{Key: Key{Namespace: "ns", Name: fmt.Sprintf("%s-%d", job, n)}, Node: on,
		Requests: map[string]int64{"cpu": cpu}}
	if job != "" {
		p.Workload, p.PodSet = Key{Namespace: "ns", Name: job}, "main"
	}
	return PodBound{p}
}

// podGone returns the event that the n-th pod of the job is gone.
func podGone(job string, n int) PodGone {
	return PodGone{Key{Namespace: "ns", Name: fmt.Sprintf("%s-%d", job, n)}}
}

// places returns the nodes of the job's pods, as in n1:2 n2:1.
func (s *scene) places(name string) (out []string) {
	a := s.engine.Holds(Key{Namespace: "ns", Name: name})
	if a == nil {
		return nil
	}
	for _, ps := range a.PodSets {
		for _, p := range ps.Places {
			out = append(out, fmt.Sprintf("%s:%d", p.Node, p.Count))
		}
	}
	slices.Sort(out)
	return out
}

// wantPlaces compares the nodes of the job's pods.
func (s *scene) wantPlaces(name string, want ...string) {
	s.Helper()
	if got := s.places(name); !slices.Equal(got, want) {
		s.Errorf("places of %s = %q, want %q", name, got, want)
	}
}

// cluster returns a scene with a queue of ample quota and four nodes of 4 cpu in two racks.
func cluster(t *testing.T, more ...Event) *scene {
	return newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"),
		node("a1", "a", 4), node("a2", "a", 4), node("b1", "b", 4), node("b2", "b", 4)}, more)...)
}

// TestWhatNoLongerWaitsForPlacesIsForgotten: on full nodes nothing may be released for weeks, while users submit jobs
// and delete them again.
func TestWhatNoLongerWaitsForPlacesIsForgotten(t *testing.T) {
	s := cluster(t)
	for size := range int64(3) {
		s.want("a job arrives", s.happens(job("large", "q", 1, 5+size, 0, 0)), "large waits: ExceedsNodes")
		s.happens(gone("large"))
	}
	if c := s.engine.waiting.NextToCheck(func(*waiting.Class) bool { return true }); c != nil {
		t.Errorf("the class of %s is kept, want none", c.Head().Key)
	}
}

// TestADeletedFlavorIsForgotten, also by what waited for places in it.
func TestADeletedFlavorIsForgotten(t *testing.T) {
	s := cluster(t)
	s.want("a job arrives", s.happens(job("large", "q", 1, 5, 0, 0)), "large waits: ExceedsNodes")
	s.want("the flavor is deleted", s.happens(FlavorDeleted{"default"}), "large waits: NoMatchingFlavor")
}

func TestReplacementIsRetriedIfNotWritten(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 2, 4, 0, 0))
	gang := s.jobs["gang"]
	at := s.places("gang")
	s.engine.Apply(NodeDeleted{at[0][:2]})
	got := decideAll(s.engine, s.now)
	if len(got) != 1 || got[0].Replace == nil {
		t.Fatalf("got decisions %+v, want a replacement", got)
	}
	s.engine.Apply(gang) // a stale event
	if s.wantPlaces("gang", s.places("gang")...); slices.Equal(s.places("gang"), at) {
		t.Errorf("places after a stale event = %q, want the new ones", at)
	}
	s.engine.Apply(Failed{Key: gang.Key, UID: gang.UID})
	s.want("the write fails", s.happens(), "replace gang")
	if slices.Contains(s.places("gang"), at[0]) {
		t.Errorf("places of gang = %q, want others than the failed one", s.places("gang"))
	}
}

// quotasFor returns quotas of this amount of cpu for each of the flavors.
func quotasFor(cpu int64, flavors ...string) quota.Quotas {
	out := quota.Quotas{}
	for _, name := range flavors {
		out[quota.FlavorResource{Flavor: name, Resource: "cpu"}] = quota.Limits{Nominal: cpu, Borrowing: quota.Unlimited,
			Lending: quota.Unlimited}
	}
	return out
}

func TestMissingNodeCapacityIsExplained(t *testing.T) {
	s := cluster(t, cordoned(node("b2", "b", 4)))
	s.happens(job("runs", "q", 1, 1, 0, 0), within(job("gang", "q", 3, 3, 0, 1)))
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "gang"})
	if x.Code != "ExceedsNodes" {
		t.Errorf("reason %s: %s, want ExceedsNodes", x.Code, x.Message)
	}
	said := x.PodSets[0].Flavors[0].Nodes
	if said == nil || said.Fits || len(said.PodSets) != 1 || said.PodSets[0].Count != 3 || said.PodSets[0].Fits != 2 ||
		said.PodSets[0].Nodes != 4 {
		t.Fatalf("explanation of the nodes = %+v, want 2 of 3 pods on 4 nodes", said)
	}
	if best := said.PodSets[0].Best; best == nil || !slices.Equal(best.Values, []string{"a"}) {
		t.Errorf("best domain = %+v, want rack a", best)
	}
}

func TestMissingNodeCapacityForAllPodSetsIsExplained(t *testing.T) {
	s := cluster(t)
	gang := within(job("gang", "q", 2, 4, 0, 0))
	gang.PodSets[0].Topology.Group = "g"
	leader := gang.PodSets[0]
	leader.Name, leader.Count, leader.PerPod = "leader", 1, map[string]int64{"cpu": 1}
	gang.PodSets = append(gang.PodSets, leader)
	s.want("a gang arrives whose pod sets fit a rack each but not together", s.happens(gang), "gang waits: ExceedsNodes")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "gang"})
	if x.Together == nil || len(x.Together.PodSets) != 2 || !x.Together.PodSets[0].Together {
		t.Fatalf("explanation of both pod sets together = %+v", x.Together)
	}
	if want :=
		`pod sets "main", "leader" within one example.com/rack preferred, not required`; x.Together.Relaxation != want {
		t.Errorf("relaxation = %q, want %q", x.Together.Relaxation, want)
	}
	gang.PodSets[0].Count = 3
	s.want("one of its pod sets no longer fits alone", s.happens(gang))
	x, _ = s.engine.Explain(Key{Namespace: "ns", Name: "gang"})
	if said := x.PodSets[0].Flavors[0].Nodes; said == nil ||
		said.Relaxation != `pod sets "main", "leader" within one example.com/rack preferred, not required` {
		t.Errorf("explanation of the pod set alone = %+v, want its relaxation", said)
	}
	s.happens(within(job("large", "q", 3, 4, 0, 1)))
	if x, _ = s.engine.Explain(Key{Namespace: "ns", Name: "large"}); x.Together != nil {
		t.Errorf("explanation of a single pod set has Together = %+v, want none", x.Together)
	}
}

func TestWaitForNewNodesIsExplained(t *testing.T) {
	q := queueOf("q", "", 1000)
	q.OnDemand = true
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4)})...)
	s.happens(job("large", "q", 1, 8, 0, 0), job("small", "q", 1, 4, 0, 0))
	for name, want := range map[string]bool{"large": true, "small": false} {
		if x, _ := s.engine.Explain(Key{Namespace: "ns", Name: name}); x.AwaitsNodes != want {
			t.Errorf("%s awaits nodes = %v, want %v", name, x.AwaitsNodes, want)
		}
	}
	for what, ev := range map[string]Event{"it is ready": s.changed("large", func(w *Workload) { w.Ready = true }),
		"its pod has one": pod("large", 0, "new", 8)} {
		s.happens(s.changed("large", func(w *Workload) { w.Ready = false }), podGone("large", 0), ev)
		if x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "large"}); x.AwaitsNodes {
			t.Errorf("large awaits nodes although %s", what)
		}
	}
}
