package find

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	corev1 "k8s.io/api/core/v1"
)

const (
	benchNodes = 15_000
	perRack    = 16
	perBlock   = 16 * perRack
	gpusEach   = 8
)

// benchNode returns a node of 8 GPUs, in racks of 16 nodes and blocks of 16 racks.
func benchNode(i int) place.Node {
	name := fmt.Sprintf("node-%05d", i)
	return place.Node{Name: name, Labels: map[string]string{
		"block": fmt.Sprintf("block-%03d", i/perBlock), "rack": fmt.Sprintf("rack-%04d", i/perRack), place.Hostname: name,
		"kubernetes.io/os": "linux", "gpu": "h100"},
		Allocatable: map[string]int64{place.Pods: 110, "cpu": 96_000, "memory": 2 << 40, "ephemeral-storage": 1 << 40,
			"nvidia.com/gpu": gpusEach}}
}

func benchMap(levels ...string) *finding {
	m := newFinding()
	m.SetTopology(place.Topology{Name: "t", Levels: levels})
	m.SetFlavor(place.Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"gpu": "h100"}})
	for i := range benchNodes {
		m.SetNode(benchNode(i))
	}
	return m
}

// fill charges GPUs on each node, as many as used returns for its index.
func fill(m *finding, used func(i int) int64) {
	for i := range benchNodes {
		if gpus := used(i); gpus > 0 {
			m.SetPod(place.Pod{Key: key(fmt.Sprint("there-", i)), Node: fmt.Sprintf("node-%05d", i),
				Requests: map[string]int64{"cpu": gpus * 4000, "nvidia.com/gpu": gpus}})
		}
	}
}

func benchGang(pods int32, gpus int64, cpu int64) place.Ask {
	return place.Ask{PodSet: "main", Flavor: "f", Count: pods,
		PerPod: map[string]int64{"cpu": cpu, "memory": 1 << 30, "nvidia.com/gpu": gpus},
		Level:  "block", Mandatory: true}
}

// BenchmarkGang places 1,000 pods in one block on an unevenly filled cluster. For a known shape the tally
// is updated with the nodes that have changed since; for a new one all nodes are counted.
func BenchmarkGang(b *testing.B) {
	m := benchMap("block", "rack", place.Hostname)
	fill(m, func(i int) int64 { return int64(i/perBlock+i%7) % 5 })
	b.Run("of a known shape", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			findOne(b, m, benchGang(1000, 1, 1000), true)
		}
	})
	b.Run("of a new shape", func(b *testing.B) {
		b.ReportAllocs()
		cpu := int64(1000)
		for b.Loop() {
			cpu++
			findOne(b, m, benchGang(1000, 1, cpu), true)
		}
	})
	b.Run("that has no places, of a new shape", func(b *testing.B) {
		b.ReportAllocs()
		cpu := int64(1000)
		for b.Loop() {
			cpu++
			findOne(b, m, benchGang(1000, 3, cpu), false)
		}
	})
	for _, why := range []bool{true, false} {
		b.Run(fmt.Sprintf("that has no places, of a known shape, with the reason=%v", why), func(b *testing.B) {
			b.ReportAllocs()
			asks := []place.Ask{benchGang(1000, 3, 1000)}
			for b.Loop() {
				if why {
					findOne(b, m, asks[0], false)
				} else if _, ok := m.TryFind(asks, place.Now); ok {
					b.Fatal("places found")
				}
			}
		})
	}
	b.Run("of leader and workers in slices", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			leader, workers := benchGang(1, 0, 8000), benchGang(992, 1, 1000)
			leader.PodSet, leader.Group, workers.Group = "leader", "g", "g"
			workers.Slices = []place.Slice{{Level: "rack", Size: 31}}
			if _, short := m.Find([]place.Ask{leader, workers}, place.Now); short != nil {
				b.Fatal(short.Message())
			}
		}
	})
	b.Run("alone in its racks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			gang := benchGang(480, 1, 1000)
			gang.Slices, gang.ExclusiveKey = []place.Slice{{Level: "rack", Size: 48}}, "rack"
			findOne(b, m, gang, true)
		}
	})
}

func findOne(b *testing.B, m *finding, a place.Ask, fits bool) []place.Assignment {
	b.Helper()
	placed, short := m.Find([]place.Ask{a}, place.Now)
	if (short == nil) != fits {
		b.Fatalf("places found = %v, shortfall %+v", placed != nil, short)
	}
	return placed
}

// BenchmarkSingle places single pods of one GPU as workloads of their own, and removes one for each once
// the cluster is half full.
func BenchmarkSingle(b *testing.B) {
	for name, levels := range map[string][]string{"by block and rack": {"block", "rack", place.Hostname},
		"by node alone": {place.Hostname}} {
		b.Run(name, func(b *testing.B) {
			m := benchMap(levels...)
			ask := benchGang(1, 1, 1000)
			ask.Level = ""
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				hold(m, fmt.Sprint("w", i), ask, findOne(b, m, ask, true))
				if i >= benchNodes*gpusEach/2 {
					m.Hold(key(fmt.Sprint("w", i-benchNodes*gpusEach/2)), nil)
				}
				i++
			}
		})
	}
}

func hold(m *finding, name string, a place.Ask, placed []place.Assignment) {
	m.Hold(key(name), &place.Holding{PodSets: []place.HeldPodSet{{Ask: a, Nodes: placed[0].Nodes}}})
}

// BenchmarkNodeUpdate changes a node and updates a tally.
func BenchmarkNodeUpdate(b *testing.B) {
	m := benchMap("block", "rack", place.Hostname)
	ask := benchGang(1000, 1, 1000)
	nodes := make([]place.Node, 1000)
	for i := range nodes {
		nodes[i] = benchNode(i * 15)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		n := nodes[i%len(nodes)]
		n.Cordoned = i/len(nodes)%2 == 0
		m.SetNode(n)
		if i++; i%100 == 0 {
			m.Fits([]place.Ask{ask}, place.Now)
		}
	}
}

// BenchmarkPod adds and removes a pod.
func BenchmarkPod(b *testing.B) {
	m := benchMap("block", "rack", place.Hostname)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := place.Pod{Key: key("p"), Node: fmt.Sprintf("node-%05d", i%benchNodes),
			Requests: map[string]int64{"cpu": 1000, "memory": 1 << 30, "nvidia.com/gpu": 1}}
		m.SetPod(p)
		m.DeletePod(p.Key)
		i++
	}
}

// BenchmarkRefused places a pod, and two pod sets, while some nodes of the only zone are avoided.
func BenchmarkRefused(b *testing.B) {
	m := newFinding()
	m.SetTopology(place.Topology{Name: "t", Levels: []string{"block", "rack", place.Hostname}})
	m.SetFlavor(place.Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"gpu": "h100"}})
	for i := range benchNodes {
		n := benchNode(i)
		n.Labels[corev1.LabelTopologyZone] = "one"
		m.SetNode(n)
	}
	worker := benchGang(16, 1, 1000)
	worker.Level = ""
	leader := worker
	leader.PodSet, leader.Count = "leader", 1
	for name, refused := range map[string][]string{"no node": nil, "one node": {"node-00000"},
		"two nodes": {"node-00000", "node-05000"}} {
		worker.Avoid, leader.Avoid = refused, refused
		for sets, asks := range map[string][]place.Ask{"a pod set": {worker}, "two pod sets": {leader, worker}} {
			b.Run(name+" of "+sets, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, short := m.Find(asks, place.Now); short != nil {
						b.Fatal(short.Message())
					}
				}
			})
		}
	}
}

// BenchmarkUnpinned sets the places of a gang whose pods each have a node of their own, half of them
// without a place there. The time must be linear in the number of pods.
func BenchmarkUnpinned(b *testing.B) {
	for _, pods := range []int32{500, 4000} {
		b.Run(fmt.Sprintf("of %d pods", pods), func(b *testing.B) {
			m, set := benchMap("block", "rack", place.Hostname), place.HeldPodSet{Ask: benchGang(pods, 1, 1000)}
			set.Ask.Unpinned = true
			for i := range pods {
				set.Nodes = append(set.Nodes, place.NodeCount{Node: fmt.Sprintf("node-%05d", i), Count: 1})
				m.SetPod(place.Pod{Key: key(fmt.Sprint("gang-", i)), Node: fmt.Sprintf("node-%05d", i+i%2*pods),
					Requests: set.Ask.PerPod, Workload: key("gang"), PodSet: "main"})
			}
			for b.Loop() {
				m.Hold(key("gang"), &place.Holding{PodSets: []place.HeldPodSet{set}})
				m.TakeInvalid()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pods), "ns/pod")
		})
	}
}
