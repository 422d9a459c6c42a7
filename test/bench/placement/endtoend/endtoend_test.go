//go:build bench

package endtoend

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

var (
	scale          = flag.Float64("scale", 1, "share of the nodes and jobs; the figures hold for 1 only")
	operatorBinary = flag.String("operator", "../../../../bin/muster-operator", "the operator to measure")
	compare        = flag.Bool("compare", true,
		"also play Jobs without a queue, and Jobs with Muster's writes but no decisions; at full size these take longer than all else")
	operatorFlags = flag.String("operator-flags", "", "more flags for the operator, such as --profiling")
)

const (
	nodes       = 500
	gpusOfNode  = 8
	singles     = 4000
	gangPods    = 512
	factorMost  = 1.5
	writesMost  = 2.0
	creators    = 16
	patience    = 12 * time.Minute
	gpu         = corev1.ResourceName("nvidia.com/gpu")
	simulated   = "muster.dev/simulated"
	rackLabel   = "muster.dev/rack"
	blockLabel  = "muster.dev/block"
	queueOfAll  = "bench"
	longEnough  = "24h"
	bindSeconds = "muster_placement_bind_seconds"
)

func scaled(n int) int { return max(1, int(float64(n)**scale)) }

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{SimNodes: scaled(nodes), SimGPUs: gpusOfNode})
}

// TestEndToEnd measures single-GPU jobs that fill all nodes, and gangs, from the first creation until the
// real kube-scheduler has bound the last pod. The floor is the same pods without Muster and without any job;
// Jobs without a queue are measured as well.
func TestEndToEnd(t *testing.T) {
	b := newBench(t)
	// One gang fills its nodes; the other does not, so that its pods are gated and get their places one by
	// one.
	filling := fullNodes(gangPods)
	gated := filling + gpusOfNode/2
	gangs := []gangKind{{name: "VCJob", of: vcGangOf}, {name: "JobSet", of: gangOf}}

	b.operate()
	podsOf := b.podsLike("single", 1, jobsOf(1, queueOfAll))
	for i := range gangs {
		gangs[i].podsOf = b.podsLike("gang", gpusOfNode, gangs[i].load(gpusOfNode))
	}
	b.rest()

	b.play("warm", scaled(singles)/10, podsOf(scaled(singles)/10))
	floorPods := b.play("floor", scaled(singles), podsOf(scaled(singles)))
	floorPodsCPU := b.used
	figure.Note(fmt.Sprintf("%d pods with nothing to decide: the floor", scaled(singles)), figure.Seconds(floorPods))
	var others compared
	if *compare {
		others = b.playOthers(floorPods)
	}
	for i := range gangs {
		gangs[i].floor = b.play("floorgang", filling, gangs[i].podsOf(filling))
	}
	floorGated := b.play("floorgang", gated, gangs[1].podsOf(gated))

	running := b.operate()
	before, operatorBefore := b.cluster.Writes(t), running.CPU(t)
	single := b.play("single", scaled(singles), jobsOf(scaled(singles), queueOfAll))
	wrote, singleCPU, operatorCPU := difference(b.wrote, before), b.used, running.CPU(t)-operatorBefore
	count, sum := running.Observed(t, bindSeconds)
	singleBind := sum / float64(max(count, 1))

	bound := time.Duration(factorMost * float64(floorPods))
	figure.Reach(t, fmt.Sprintf("%d single-GPU jobs until all are bound, and to the floor", scaled(singles)),
		fmt.Sprintf("%s, %.2f", figure.Seconds(single), single.Seconds()/floorPods.Seconds()),
		figure.Seconds(bound), single <= bound)
	each := float64(operatorWrites(wrote)-scaled(singles)) / float64(scaled(singles))
	figure.Reach(t, "  Muster's writes a job, without creations and pods ready", fmt.Sprintf("%.3f", each),
		fmt.Sprint(writesMost), each <= writesMost)
	figure.Note("  in addition, the one that reports ready pods", "1.000")
	figure.Note("  CPU time of the control plane: floor, Muster",
		figure.Seconds(floorPodsCPU)+", "+figure.Seconds(singleCPU))
	if *compare {
		others.note(single)
	}
	figure.Note("  CPU time of the operator until all are bound, until all is removed",
		figure.Seconds(b.operatorUsed)+", "+figure.Seconds(operatorCPU))
	b.noteWrites(wrote)
	figure.Note("  mean time from admission to the last bind", fmt.Sprintf("%.2f s", singleBind))

	for _, kind := range gangs {
		b.playGang(running, gpusOfNode, kind) // warm up: the first object of a kind makes the API server start serving it
		fillingGang := b.playGang(running, filling, kind)
		fillingGang.figures(b, fmt.Sprintf("one gang of %d pods, a %s, until all are bound", filling, kind.name), kind.floor)
		figure.Reach(t, "  Muster's writes to its pods", fmt.Sprint(fillingGang.wrote["PATCH pods"]), "0",
			fillingGang.wrote["PATCH pods"] == 0)
	}
	gatedGang := b.playGang(running, gated, gangs[1])
	gatedGang.figures(b, fmt.Sprintf("a JobSet of %d, which fills no nodes and whose pods are gated", gated), floorGated)
	figure.Note("peak memory of the operator", figure.MiB(running.Peak(t)))
}

// compared holds how long the same Jobs take without a queue, and suspended with Muster's writes but without
// decisions.
type compared struct{ jobs, jobsCPU, writes, writesCPU time.Duration }

// playOthers plays the loads of compared.
func (b *bench) playOthers(floor time.Duration) (c compared) {
	b.Helper()
	c.jobs = b.play("jobs", scaled(singles), jobsOf(scaled(singles), ""))
	c.jobsCPU = b.used
	figure.Note("Jobs of the same pods without a queue, and to the floor",
		fmt.Sprintf("%s, %.2f", figure.Seconds(c.jobs), c.jobs.Seconds()/floor.Seconds()))
	c.writes = b.playBy("floorwrites", scaled(singles), jobsOf(scaled(singles), queueOfAll), b.writeAsAdmitted)
	c.writesCPU = b.used
	figure.Note("the same, suspended, with Muster's writes but no decisions",
		fmt.Sprintf("%s, %.2f", figure.Seconds(c.writes), c.writes.Seconds()/floor.Seconds()))
	return c
}

// note prints how the duration relates to those of compared, and their CPU time.
func (c compared) note(took time.Duration) {
	figure.Note("  to the Jobs without a queue, to those with Muster's writes",
		fmt.Sprintf("%.2f, %.2f", took.Seconds()/c.jobs.Seconds(), took.Seconds()/c.writes.Seconds()))
	figure.Note("  CPU time of the control plane: Jobs, Jobs with Muster's writes",
		figure.Seconds(c.jobsCPU)+", "+figure.Seconds(c.writesCPU))
}

// operatorWrites returns the number of writes of the operator without creations. Kubernetes' own controllers PUT
// where the operator patches; binding and pod status do not count.
func operatorWrites(wrote map[string]int) int {
	sum := 0
	for _, what := range []string{"PATCH workloads", "PATCH workloads/status", "PATCH jobs", "PATCH jobs/status",
		"PATCH pods", "PATCH jobsets/status", "PATCH jobsets"} {
		sum += wrote[what]
	}
	return sum
}

// difference returns the writes between two counts.
func difference(after, before map[string]float64) map[string]int {
	out := map[string]int{}
	for what, n := range after {
		out[what] = int(n - before[what])
	}
	return out
}

// noteWrites prints the writes of each kind, by any client.
func (b *bench) noteWrites(wrote map[string]int) {
	for _, what := range slices.Sorted(maps.Keys(wrote)) {
		if wrote[what] > 0 {
			figure.Note("    "+what, fmt.Sprint(wrote[what]))
		}
	}
}
