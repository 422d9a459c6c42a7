package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestPromisesAreKept: where all jobs have limits, which are enforced, and none of a higher priority comes, every job
// starts no later than promised: in one queue or several of a cohort, which reclaim from each other or not, with rigid
// and elastic jobs, on nodes or not, and whenever the engine is restarted.
func TestPromisesAreKept(t *testing.T) {
	promised := 0
	rapid.Check(t, func(t *rapid.T) {
		c, jobs := drawnWithLimits(t)
		r := c.Run(jobs)
		if promised += r.Promised; r.Delayed > 0 {
			for i, j := range jobs {
				t.Logf("%s in %s at %s: %d to %d, work %s, limit %s, waited %s", j.Name, j.Queue, j.Arrives, j.Min, j.Max,
					j.Work, j.Time.Limit, r.Waited[i])
			}
			for _, p := range r.Promises {
				t.Logf("%s was promised to start at %s, and started at %s", jobs[p.Job].Name, p.At, p.Started)
			}
			t.Fatalf("%d of %d promised starts were delayed; the engine was restarted at %v, pods leave in %s", r.Delayed,
				r.Promised, c.Restarts, c.PodsLeaveIn)
		}
	})
	if promised == 0 {
		t.Error("no start was promised: the test shows nothing")
	}
}

// drawnWithLimits draws a cluster of queues that plan starts, and jobs with limits.
func drawnWithLimits(t *rapid.T) (Cluster, []Job) {
	c := Cluster{Reservations: rapid.IntRange(0, 3).Draw(t, "reservations")}
	onNodes := rapid.IntRange(0, 1).Draw(t, "on nodes") == 1
	if onNodes {
		c.Objects = drawnNodes(t)
	} else {
		c.Objects = []engine.Event{engine.FlavorSet{Flavor: engine.Flavor{Name: "default"}}}
	}
	c.PodsLeaveIn = seconds(rapid.IntRange(0, 30).Draw(t, "pods leave in"))
	reclaims := rapid.Bool().Draw(t, "queues reclaim")
	if !reclaims { // a new engine lets a guest that was taken back go first again
		for range rapid.IntRange(0, 3).Draw(t, "restarts") {
			c.Restarts = append(c.Restarts, seconds(rapid.IntRange(0, 2000).Draw(t, "restart")))
		}
	}
	cohort := rapid.SampledFrom([]string{"", "lab"}).Draw(t, "cohort")
	sizes := make([]int64, rapid.IntRange(1, 3).Draw(t, "queues"))
	for i := range sizes {
		sizes[i] = rapid.Int64Range(1, 8).Draw(t, "quota")
		c.Objects = append(c.Objects, queueWithBackfill(queueName(i), cohort, sizes[i], reclaims)...)
	}
	elastic := rapid.Bool().Draw(t, "some are elastic")
	var jobs []Job
	var at time.Duration
	for i := range rapid.IntRange(2, 30).Draw(t, "jobs") {
		at += seconds(rapid.IntRange(0, 100).Draw(t, "later"))
		q := rapid.IntRange(0, len(sizes)-1).Draw(t, "queue")
		j := drawnJob(t, int32(sizes[q]), elastic, onNodes)
		j.Name, j.Arrives, j.Queue = name(i), at, queueName(q)
		jobs = append(jobs, j)
	}
	return c, jobs
}

// TestARestartLetsNoTreeTakeTheNodesOfAnother: wide waits in one tree for the end of first, and late in another tree
// comes after it. The engine is restarted just when first ends.
func TestARestartLetsNoTreeTakeTheNodesOfAnother(t *testing.T) {
	c := Cluster{Restarts: []time.Duration{time.Minute}, Objects: slices.Concat(
		onRacks(1), queueWithBackfill("a", "", 2, false), queueWithBackfill("b", "", 3, false))}
	job := func(name, queue string, gpus int32) Job {
		return Job{Name: name, Queue: queue, Min: gpus, Max: gpus, Work: time.Minute,
			Time: durations.Known{Limit: time.Minute}, Pod: &engine.PodSet{PerPod: map[string]int64{GPU: 1}}}
	}
	for _, arrives := range []time.Duration{0, time.Second} {
		late := job("late", "a", 2)
		late.Arrives = arrives
		r := c.Run([]Job{job("first", "a", 2), job("it-is-wide", "b", 3), late})
		if waited := r.Waited[1]; waited != time.Minute {
			t.Errorf("wide waited for %s, want until first has ended after a minute", waited)
		}
	}
}

func queueName(i int) string { return fmt.Sprint("q", i) }

func drawnNodes(t *rapid.T) []engine.Event { return onRacks(rapid.IntRange(1, 6).Draw(t, "nodes")) }

// onRacks returns that many nodes of four GPUs, two in a rack, and the flavor that places pods on them.
func onRacks(nodes int) []engine.Event {
	out := []engine.Event{
		engine.TopologySet{Topology: place.Topology{Name: "racks", Levels: []string{"rack", place.Hostname}}},
		engine.FlavorSet{Flavor: engine.Flavor{Name: "default", Topology: "racks"}}}
	for i := range nodes {
		name := fmt.Sprint("node-", i)
		out = append(out, engine.NodeSet{Node: place.Node{Name: name,
			Labels:      map[string]string{"rack": fmt.Sprint("rack-", i/2), place.Hostname: name},
			Allocatable: map[string]int64{GPU: 4, place.Pods: 100}}})
	}
	return out
}

// queueWithBackfill returns a queue of this quota that plans starts.
func queueWithBackfill(name, cohort string, gpus int64, reclaims bool) []engine.Event {
	var rules preempt.Policy
	if reclaims {
		rules.Reclaim = preempt.Any
	}
	return []engine.Event{
		engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{Name: name, Cohort: cohort, Backfill: true,
			Preemption: rules, Namespaces: &metav1.LabelSelector{},
			Groups: []flavor.Group{{Resources: []string{GPU}, Flavors: []string{"default"}}},
			Quotas: quota.Quotas{{Flavor: "default", Resource: GPU}: {Nominal: gpus, Borrowing: quota.Unlimited,
				Lending: quota.Unlimited}}}},
		engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: Namespace, Name: name},
			ClusterQueue: name}}}
}

// drawnJob returns a job with a limit that its work does not exceed.
func drawnJob(t *rapid.T, largest int32, elastic, onNodes bool) Job {
	size := rapid.Int32Range(1, largest).Draw(t, "size")
	j := Job{Min: size, Max: size, Work: seconds(rapid.IntRange(1, 300).Draw(t, "work"))}
	j.Time = durations.Known{Limit: j.Work + seconds(rapid.IntRange(0, 300).Draw(t, "limit beyond the work")),
		Kind: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "kind")}
	if elastic && size > 1 && rapid.Bool().Draw(t, "elastic") {
		j.Min, j.Exponent = 1, 0.85
		j.Time.Limit = 4 * j.Work
	}
	if onNodes {
		j.Pod = &engine.PodSet{PerPod: map[string]int64{GPU: 1}}
		if rapid.Bool().Draw(t, "in one rack") {
			j.Pod.Topology = &flavor.TopologyRequest{Level: "rack", Mandatory: true}
		}
	}
	return j
}
