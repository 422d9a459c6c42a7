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
	// settle is the time that the operator is given for writes after the last Workload has finished: it writes the
	// status of a queue at most once in 5 s.
	settle = 10 * time.Second
)

// TestAdmission measures the wall time of the load and compares it to the floor: the same Workloads without an
// operator, created at the same times, with one write to admit and one to finish each. The quota alone makes the load
// last 66 s. The floor is played before and after the operator, and the mean counts, because the speed of a shared
// machine changes within minutes.
func TestAdmission(t *testing.T) {
	cluster := testcluster.Get(t)
	server := figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid"))

	capacity := playCapacity(t, cluster)
	floorBefore, floorCPUBefore := playFloor(t, cluster, server)

	namespace := cluster.Namespace(t)
	createQueues(t, cluster.Client, namespace)
	running := operator.Start(t, *operatorBinary, cluster, strings.Fields(*operatorFlags)...)
	running.AwaitReady(t)
	awaitSettled(t)
	r := newRequests(t, cluster, namespace)
	load := arrivals(t, namespace)
	before, serverBefore, operatorBefore := cluster.Writes(t), server.CPU(t), running.CPU(t)
	measured := play(t, newDriver(r), load)
	serverCPU, operatorCPU := server.CPU(t)-serverBefore, running.CPU(t)-operatorBefore
	awaitSettled(t)
	wrote := countWrites(t, cluster, before, measured.tally, len(load), int(r.statusWrites.Load()))
	peak := running.Peak(t)
	r.clear(t)
	running.End(syscall.SIGTERM)
	floorAfter, floorCPUAfter := playFloor(t, cluster, server)
	floor := (floorBefore.wall + floorAfter.wall) / 2

	bound := time.Duration(floorFactorMost * float64(max(floor, capacityMinimum)))
	figure.Reach(t, fmt.Sprintf("wall time of %d workloads", len(load)), figure.Seconds(measured.wall),
		figure.Seconds(bound), measured.wall <= bound)
	figure.Note("  the same with nothing to decide: the floor", figure.Seconds(floor))
	figure.Note("    before the operator, after it", figure.Seconds(floorBefore.wall)+", "+figure.Seconds(floorAfter.wall))
	figure.Note("  writes a second, each sent as soon as possible", fmt.Sprintf("%.0f", capacity))
	for _, class := range classes {
		figure.Note(fmt.Sprintf("mean time to admission, %s", class.name), figure.Seconds(measured.waits[class.name]))
		figure.Note("  the floor", figure.Seconds((floorBefore.waits[class.name]+floorAfter.waits[class.name])/2))
	}
	reportWrites(t, wrote, len(load))
	figure.Note("CPU of the control plane", figure.Seconds(serverCPU))
	figure.Note("  the floor, before and after", figure.Seconds(floorCPUBefore)+", "+figure.Seconds(floorCPUAfter))
	figure.Note("CPU of the operator", figure.Seconds(operatorCPU))
	figure.Reach(t, "peak memory of the operator", figure.MiB(peak), figure.MiB(operatorPeakMost),
		peak <= operatorPeakMost)
}

// playFloor plays the load without an operator, and returns its result and the CPU time that the control plane used.
func playFloor(t *testing.T, cluster *testcluster.Cluster, server figure.Process) (result, time.Duration) {
	t.Helper()
	namespace := cluster.Namespace(t)
	d := newDriver(newRequests(t, cluster, namespace))
	d.admitsItself = true
	load := arrivals(t, namespace)
	before := server.CPU(t)
	floor := play(t, d, load)
	used := server.CPU(t) - before
	d.clear(t)
	return floor, used
}

// playCapacity plays a tenth of the load without an operator as fast as the API server accepts it, and returns the
// writes a second. It also warms the API server up.
func playCapacity(t *testing.T, cluster *testcluster.Cluster) float64 {
	t.Helper()
	namespace := cluster.Namespace(t)
	d := newDriver(newRequests(t, cluster, namespace))
	d.admitsItself, d.immediately = true, true
	load := arrivals(t, namespace)
	load = load[:(len(load)+9)/10]
	took := play(t, d, load).wall
	d.clear(t)
	const writesEach = 3 // create, admit, finish
	return writesEach * float64(len(load)) / took.Seconds()
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

// awaitSettled waits until the operator has made its deferred writes.
func awaitSettled(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(settle): // there is no event after the last write
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// reportWrites prints the operator's writes. The limit does not count reasons, nor two writes for each eviction: the
// eviction itself, and the second admission of the evicted Workload.
func reportWrites(t *testing.T, wrote writes, workloads int) {
	t.Helper()
	each := func(count int) float64 { return float64(count) / float64(workloads) }
	counted := each(wrote.total() - wrote.reasons - 2*wrote.evictions)
	figure.Reach(t, "writes a workload, without evictions and reasons, less one for each eviction",
		fmt.Sprintf("%.3f", counted), fmt.Sprint(writesPerWorkloadMost), counted <= writesPerWorkloadMost)
	figure.Note("  all of them", fmt.Sprintf("%.3f", each(wrote.total())))
	for _, part := range []struct {
		what  string
		count int
	}{
		{"admissions", wrote.admissions}, {"status of queues", wrote.queueStatus},
		{"evictions", wrote.evictions}, {"quota released after evictions", wrote.releases},
		{"reasons of pending Workloads", wrote.reasons}, {"conflicts", wrote.conflicts},
		{"other changes of Workloads", wrote.other},
	} {
		figure.Note("  "+part.what, fmt.Sprint(part.count))
	}
	figure.Note("  other resources", wrote.othersText())
}
