//go:build bench

// Package placement measures how fast, and how well, places are found on 15,000 nodes.
package placement

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	nodes    = 15_000
	perRack  = 16
	perBlock = 16 * perRack
	gpusEach = 8
	gpu      = "nvidia.com/gpu"
	gangs    = 21

	gangMost   = 20 * time.Millisecond
	singleMost = 50 * time.Microsecond
	updateMost = 10 * time.Microsecond
	memoryMost = 150 << 20
)

// cluster15k returns a map with a number of nodes of 8 GPUs, in racks of 16 nodes and blocks of 16 racks.
func cluster15k(nodes int) *place.Map {
	m := place.New()
	m.SetTopology(place.Topology{Name: "t", Levels: []string{"block", "rack", place.Hostname}})
	m.SetFlavor(place.Flavor{Name: "gpu", Topology: "t", NodeLabels: map[string]string{"kubernetes.io/os": "linux"}})
	for i := range nodes {
		m.SetNode(node(i))
	}
	return m
}

func node(i int) place.Node {
	name := fmt.Sprintf("node-%05d", i)
	return place.Node{Name: name, Labels: map[string]string{
		"block": fmt.Sprintf("block-%03d", i/perBlock), "rack": fmt.Sprintf("rack-%04d", i/perRack), place.Hostname: name,
		"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "gpu.8x"},
		Allocatable: map[string]int64{place.Pods: 110, "cpu": 96_000, "memory": 2 << 40,
			"ephemeral-storage": 1 << 40, gpu: gpusEach}}
}

// occupy puts two daemons on each node, and pods that use up to four of its GPUs.
func occupy(m *place.Map) {
	for i := range nodes {
		at := fmt.Sprintf("node-%05d", i)
		for d := range 2 {
			m.SetPod(place.Pod{Key: keyOf(fmt.Sprint("daemon-", d, "-", i)), Node: at,
				Requests: map[string]int64{"cpu": 100, "memory": 64 << 20}, Resident: true})
		}
		if gpus := int64(i/perBlock+i%7) % 5; gpus > 0 {
			m.SetPod(place.Pod{Key: keyOf(fmt.Sprint("there-", i)), Node: at,
				Requests: map[string]int64{"cpu": gpus * 4000, gpu: gpus}})
		}
	}
}

// gang asks for 1,000 pods in one block. Gangs with different cpu share no cached counts.
func gang(gpus, cpu int64) place.Ask {
	a := ask(1000, gpus, "block")
	a.PerPod["cpu"], a.PerPod["memory"] = cpu, 16<<30
	return a
}

// TestPlacement measures the engine's time to place gangs and single pods and to take in node updates on 15,000 nodes,
// and the memory of its data.
func TestPlacement(t *testing.T) {
	before := heapInUse()
	m := cluster15k(nodes)
	occupy(m)
	finder := find.New(m)
	finder.Find([]place.Ask{gang(1, 1000)}, place.Now)

	cpu := int64(1000)
	times := func(gpus int64, fits bool) (median, longest time.Duration) {
		var out []time.Duration
		for range gangs {
			cpu++
			began := time.Now()
			_, short := finder.Find([]place.Ask{gang(gpus, cpu)}, place.Now)
			out = append(out, time.Since(began))
			if (short == nil) != fits {
				t.Fatalf("a gang with %d GPUs a pod was placed = %t, want %t: %+v", gpus, short == nil, fits, short)
			}
		}
		slices.Sort(out)
		return out[gangs/2].Round(time.Microsecond), out[gangs-1].Round(time.Microsecond)
	}
	took, longest := times(1, true)
	figure.Reach(t, fmt.Sprintf("1,000-pod gang placed, a new shape each time, median of %d", gangs), took.String(),
		gangMost.String(), took < gangMost)
	figure.Note("  the longest", longest.String())
	took, longest = times(3, false)
	figure.Reach(t, fmt.Sprintf("1,000-pod gang found unplaceable, median of %d", gangs), took.String(),
		gangMost.String(), took < gangMost)
	figure.Note("  the longest", longest.String())

	single := ask(1, 1, "")
	single.PerPod["cpu"] = 500
	const rounds, each = 10, 1_000
	durations := roundsOf(rounds, each, func(i int) {
		placed, short := finder.Find([]place.Ask{single}, place.Now)
		if short != nil {
			t.Fatal(short.Message())
		}
		m.Hold(keyOf(fmt.Sprint("single-", i)),
			&place.Holding{PodSets: []place.HeldPodSet{{Ask: single, Nodes: placed[0].Nodes}}})
	})
	durations.reach(t, fmt.Sprintf("%d single-GPU workloads placed and held, each", rounds*each), singleMost)

	changed := make([]place.Node, nodes)
	for i := range changed {
		changed[i] = node(i)
		changed[i].Cordoned = true
	}
	durations = roundsOf(rounds, nodes/rounds, func(i int) {
		m.SetNode(changed[i])
		if i%100 == 0 {
			finder.Find([]place.Ask{single}, place.Now)
		}
	})
	durations.reach(t, "node update, with all tallies brought up to date, each", updateMost)

	used := heapInUse() - before
	figure.Reach(t, "memory of 15,000 nodes, 43,000 pods and 10,000 workloads", figure.MiB(used), figure.MiB(memoryMost),
		used < memoryMost)
	runtime.KeepAlive(finder)
	runtime.KeepAlive(changed)
}

// timesOf holds the average duration of one operation per round, the shortest first.
type timesOf []time.Duration

// roundsOf runs rounds of each operations.
func roundsOf(rounds, each int, do func(i int)) timesOf {
	var out timesOf
	for round := range rounds {
		began := time.Now()
		for i := range each {
			do(round*each + i)
		}
		out = append(out, time.Since(began)/time.Duration(each))
	}
	slices.Sort(out)
	return out
}

// reach reports the best round, since other load on the machine only makes rounds slower, and notes the
// median and the worst.
func (to timesOf) reach(t *testing.T, what string, most time.Duration) {
	t.Helper()
	figure.Reach(t, fmt.Sprintf("%s, best of %d rounds", what, len(to)), to[0].String(), most.String(), to[0] < most)
	figure.Note("  the median and the worst of them", fmt.Sprintf("%s, %s", to[len(to)/2], to[len(to)-1]))
}

// heapInUse returns the size of the live heap.
func heapInUse() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
