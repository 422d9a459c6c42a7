//go:build bench

package admission

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

const (
	floorFactorMost       = 1.25
	writesPerWorkloadMost = 1.2
	operatorPeakMost      = 250_000_000
	patience              = 12 * time.Minute
	// settle is for what the operator writes after the last Workload's end: the status
	// of queues, at most once in 5 s.
	settle = 10 * time.Second
)

// TestAdmission: how long the load takes, beside the floor: the same Workloads,
// created at the same times, each with one write to admit and one to finish it, with
// no operator there. The load itself takes 66 s of its queues, however fast all else is. The floor is played before and after,
// and what counts is the mean: the speed of a machine that others share with it changes within minutes.
func TestAdmission(t *testing.T) {
	cluster := testcluster.Get(t)
	server := figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid"))

	capacity := playCapacity(t, cluster)
	floorBefore, floorCPUBefore := playFloor(t, cluster, server)

	namespace := cluster.Namespace(t)
	createQueues(t, cluster.Client, namespace)
	running := operator.Start(t, *operatorBinary, cluster, strings.Fields(*operatorFlags)...)
	running.AwaitReady(t)
	awaitQuiet(t)
	r := newRequests(t, cluster, namespace)
	load := arrivals(t, namespace)
	before, serverBefore, operatorBefore := cluster.Writes(t), server.CPU(t), running.CPU(t)
	measured := play(t, newDriver(r), load)
	serverCPU, operatorCPU := server.CPU(t)-serverBefore, running.CPU(t)-operatorBefore
	awaitQuiet(t)
	wrote := countWrites(t, cluster, before, measured.tally, len(load), int(r.statusWrites.Load()))
	peak := running.Peak(t)
	r.clear(t)
	running.End(syscall.SIGTERM)
	floorAfter, floorCPUAfter := playFloor(t, cluster, server)
	floor := (floorBefore.wall + floorAfter.wall) / 2

	bound := time.Duration(floorFactorMost * float64(max(floor, capacityMinimum)))
	figure.Reach(t, fmt.Sprintf("wall time of %d workloads", len(load)), figure.Seconds(measured.wall), figure.Seconds(bound), measured.wall <= bound)
	figure.Note("  the same with nothing to decide: the floor", figure.Seconds(floor))
	figure.Note("    before it, after it", figure.Seconds(floorBefore.wall)+", "+figure.Seconds(floorAfter.wall))
	figure.Note("  writes a second where none waits for its time", fmt.Sprintf("%.0f", capacity))
	for _, class := range classes {
		figure.Note(fmt.Sprintf("mean time to admission, %s", class.name), figure.Seconds(measured.waits[class.name]))
		figure.Note("  the floor", figure.Seconds((floorBefore.waits[class.name]+floorAfter.waits[class.name])/2))
	}
	reportWrites(t, wrote, len(load))
	figure.Note("CPU of the control plane", figure.Seconds(serverCPU))
	figure.Note("  the floor, before and after", figure.Seconds(floorCPUBefore)+", "+figure.Seconds(floorCPUAfter))
	figure.Note("CPU of the operator", figure.Seconds(operatorCPU))
	figure.Reach(t, "peak memory of the operator", figure.MiB(peak), figure.MiB(operatorPeakMost), peak <= operatorPeakMost)
}

// playFloor plays the load where no operator is, and gives the CPU time that the
// control plane took for it.
func playFloor(t *testing.T, cluster *testcluster.Cluster, server figure.Process) (result, time.Duration) {
	t.Helper()
	namespace := cluster.Namespace(t)
	d := newDriver(newRequests(t, cluster, namespace))
	d.admits = true
	load := arrivals(t, namespace)
	before := server.CPU(t)
	floor := play(t, d, load)
	used := server.CPU(t) - before
	d.clear(t)
	return floor, used
}

// playCapacity plays a part of the load as fast as it can be written, where no
// operator is, and gives the writes a second. It also warms the API server up.
func playCapacity(t *testing.T, cluster *testcluster.Cluster) float64 {
	t.Helper()
	namespace := cluster.Namespace(t)
	d := newDriver(newRequests(t, cluster, namespace))
	d.admits, d.atOnce = true, true
	load := arrivals(t, namespace)
	load = load[:(len(load)+9)/10]
	took := play(t, d, load).wall
	d.clear(t)
	const writesOfEach = 3
	return writesOfEach * float64(len(load)) / took.Seconds()
}

func play(t *testing.T, d *driver, load []arrival) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := d.play(ctx, load, d.version(t))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// awaitQuiet waits until what is written in the background is written.
func awaitQuiet(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(settle): // that nothing is under way can only be seen by waiting
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// reportWrites prints the operator's writes. What must be reached is about all but
// evictions and reasons, and lets each eviction cost one more: who was evicted is admitted
// again.
func reportWrites(t *testing.T, wrote writes, workloads int) {
	t.Helper()
	each := func(count int) float64 { return float64(count) / float64(workloads) }
	counted := each(wrote.total() - wrote.reasons - 2*wrote.evictions)
	figure.Reach(t, "writes a workload but evictions and reasons, one for each eviction left out", fmt.Sprintf("%.3f", counted), fmt.Sprint(writesPerWorkloadMost), counted <= writesPerWorkloadMost)
	figure.Note("  all of them", fmt.Sprintf("%.3f", each(wrote.total())))
	for _, part := range []struct {
		what  string
		count int
	}{
		{"admissions", wrote.admissions}, {"status of queues", wrote.queueStatus},
		{"evictions", wrote.evictions}, {"quota given back after them", wrote.releases},
		{"reasons to wait", wrote.reasons}, {"refused as conflicts", wrote.vain}, {"other changes of Workloads", wrote.other},
	} {
		figure.Note("  "+part.what, fmt.Sprint(part.count))
	}
	figure.Note("  all else", wrote.elsewhereText())
}
