package place

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	benchNodes = 15_000
	perRack    = 16
	perBlock   = 16 * perRack
	gpusEach   = 8
)

// benchNode returns a node of 8 GPUs, in racks of 16 nodes and blocks of 16 racks.
func benchNode(i int) Node {
	name := fmt.Sprintf("node-%05d", i)
	return Node{Name: name, Labels: map[string]string{
		"block": fmt.Sprintf("block-%03d", i/perBlock), "rack": fmt.Sprintf("rack-%04d", i/perRack), Hostname: name, "kubernetes.io/os": "linux", "gpu": "h100"},
		Allocatable: map[string]int64{Pods: 110, "cpu": 96_000, "memory": 2 << 40, "ephemeral-storage": 1 << 40, "nvidia.com/gpu": gpusEach}}
}

func benchMap(levels ...string) *Map {
	m := New()
	m.SetTopology(Topology{Name: "t", Levels: levels})
	m.SetFlavor(Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"gpu": "h100"}})
	for i := range benchNodes {
		m.SetNode(benchNode(i))
	}
	return m
}

// fill charges GPUs on each node, as many as used returns for its index.
func fill(m *Map, used func(i int) int64) {
	for i := range benchNodes {
		if gpus := used(i); gpus > 0 {
			m.SetPod(Pod{Key: key(fmt.Sprint("there-", i)), Node: fmt.Sprintf("node-%05d", i), Requests: map[string]int64{"cpu": gpus * 4000, "nvidia.com/gpu": gpus}})
		}
	}
}

func benchGang(pods int32, gpus int64, cpu int64) Ask {
	return Ask{PodSet: "main", Flavor: "f", Count: pods, PerPod: map[string]int64{"cpu": cpu, "memory": 1 << 30, "nvidia.com/gpu": gpus},
		Level: "block", Mandatory: true}
}

// BenchmarkGang places 1,000 pods in one block on an unevenly filled cluster. For a known shape the tally
// is updated with the nodes that have changed since; for a new one all nodes are counted.
func BenchmarkGang(b *testing.B) {
	m := benchMap("block", "rack", Hostname)
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
			asks := []Ask{benchGang(1000, 3, 1000)}
			for b.Loop() {
				if why {
					findOne(b, m, asks[0], false)
				} else if _, ok := m.TryFind(asks, Now); ok {
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
			workers.Slices = []Slice{{"rack", 31}}
			if _, short := m.Find([]Ask{leader, workers}, Now); short != nil {
				b.Fatal(short.Message())
			}
		}
	})
	b.Run("alone in its racks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			gang := benchGang(480, 1, 1000)
			gang.Slices, gang.ExclusiveKey = []Slice{{"rack", 48}}, "rack"
			findOne(b, m, gang, true)
		}
	})
}

func findOne(b *testing.B, m *Map, a Ask, fits bool) []Assignment {
	b.Helper()
	placed, short := m.Find([]Ask{a}, Now)
	if (short == nil) != fits {
		b.Fatalf("places found = %v, shortfall %+v", placed != nil, short)
	}
	return placed
}

// BenchmarkSingle places single pods of one GPU as workloads of their own, and removes one for each once
// the cluster is half full.
func BenchmarkSingle(b *testing.B) {
	for name, levels := range map[string][]string{"by block and rack": {"block", "rack", Hostname}, "by node alone": {Hostname}} {
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

func hold(m *Map, name string, a Ask, placed []Assignment) {
	m.Hold(key(name), &Holding{PodSets: []HeldPodSet{{Ask: a, Nodes: placed[0].Nodes}}})
}

// BenchmarkNodeUpdate changes a node and updates a tally.
func BenchmarkNodeUpdate(b *testing.B) {
	m := benchMap("block", "rack", Hostname)
	ask := benchGang(1000, 1, 1000)
	nodes := make([]Node, 1000)
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
			m.Fits([]Ask{ask}, Now)
		}
	}
}

// BenchmarkPod adds and removes a pod.
func BenchmarkPod(b *testing.B) {
	m := benchMap("block", "rack", Hostname)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := Pod{Key: key("p"), Node: fmt.Sprintf("node-%05d", i%benchNodes), Requests: map[string]int64{"cpu": 1000, "memory": 1 << 30, "nvidia.com/gpu": 1}}
		m.SetPod(p)
		m.DeletePod(p.Key)
		i++
	}
}

// BenchmarkRefused places a pod, and two pod sets, while some nodes of the only zone are avoided.
func BenchmarkRefused(b *testing.B) {
	m := New()
	m.SetTopology(Topology{Name: "t", Levels: []string{"block", "rack", Hostname}})
	m.SetFlavor(Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"gpu": "h100"}})
	for i := range benchNodes {
		n := benchNode(i)
		n.Labels[corev1.LabelTopologyZone] = "one"
		m.SetNode(n)
	}
	worker := benchGang(16, 1, 1000)
	worker.Level = ""
	leader := worker
	leader.PodSet, leader.Count = "leader", 1
	for name, refused := range map[string][]string{"no node": nil, "one node": {"node-00000"}, "two nodes": {"node-00000", "node-05000"}} {
		worker.Avoid, leader.Avoid = refused, refused
		for sets, asks := range map[string][]Ask{"a pod set": {worker}, "two pod sets": {leader, worker}} {
			b.Run(name+" of "+sets, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, short := m.Find(asks, Now); short != nil {
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
			m, set := benchMap("block", "rack", Hostname), HeldPodSet{Ask: benchGang(pods, 1, 1000)}
			set.Ask.Unpinned = true
			for i := range pods {
				set.Nodes = append(set.Nodes, NodeCount{fmt.Sprintf("node-%05d", i), 1})
				m.SetPod(Pod{Key: key(fmt.Sprint("gang-", i)), Node: fmt.Sprintf("node-%05d", i+i%2*pods), Requests: set.Ask.PerPod, Workload: key("gang"), PodSet: "main"})
			}
			for b.Loop() {
				m.Hold(key("gang"), &Holding{PodSets: []HeldPodSet{set}})
				m.TakeInvalid()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pods), "ns/pod")
		})
	}
}
