//go:build bench

package admission

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

const (
	restartQueues      = 100
	restartInQueue     = 500 // workloads of each queue, half of which use all its quota
	firstAdmissionMost = 5 * time.Second
)

// TestRestart measures the time from an operator's start to its first admission. The operator before it is killed among
// 50,000 Workloads, half of them admitted and half pending; before the next one starts, one Workload of each queue
// finishes. The floor is one list of the same Workloads, decoded.
func TestRestart(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	r := newRequests(t, cluster, namespace)
	perQueue := scaled(restartInQueue)
	createFlavor(t, cluster.Client)
	for i := range restartQueues {
		create(t, cluster.Client, clusterQueue(restartQueue(i), int64(perQueue/2)))
		create(t, cluster.Client, localQueue(namespace, restartQueue(i)))
	}
	began := time.Now()
	fill(t, r, perQueue)
	figure.Note(fmt.Sprintf("writing %d workloads, every other one admitted", restartQueues*perQueue),
		figure.Seconds(time.Since(began)))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	changes := r.watch(ctx, r.version(t))
	first := operator.Start(t, *operatorBinary, cluster, strings.Fields(*operatorFlags)...)
	finishInEachQueue(t, r, 0)
	awaitAdmissions(t, ctx, changes)
	first.End(syscall.SIGKILL)
	finishInEachQueue(t, r, 1)
	listing := timeToList(t, cluster.Client, namespace)

	second := operator.Start(t, *operatorBinary, cluster, strings.Fields(*operatorFlags)...)
	ready := second.AwaitReady(t)
	earliest, latest := awaitAdmissions(t, ctx, changes)
	toFirst, toLast := earliest.Sub(second.Began), latest.Sub(second.Began)
	most := listing + firstAdmissionMost
	figure.Note("one list of the workloads: the floor", figure.Seconds(listing))
	figure.Note("from the operator's start to ready", figure.Seconds(ready))
	figure.Reach(t, "  to its first admission", figure.Seconds(toFirst), figure.Seconds(most), toFirst <= most)
	figure.Note(fmt.Sprintf("  to the last of %d", restartQueues), figure.Seconds(toLast))
	figure.Note("CPU of the operator until the last admission", figure.Seconds(second.CPU(t)))
	figure.Note("peak memory of the operator", figure.MiB(second.Peak(t)))
}

func restartQueue(i int) string { return fmt.Sprintf("restart-%d", i) }

func restartWorkload(queue, n int) string { return fmt.Sprintf("%s-%d", restartQueue(queue), n) }

// fill creates the Workloads of every queue and admits the first half of them, which uses all quota.
func fill(t *testing.T, r *requests, perQueue int) {
	t.Helper()
	var writers errgroup.Group
	writers.SetLimit(writersOfAKind)
	for n := range perQueue {
		for i := range restartQueues {
			queue, name := restartQueue(i), restartWorkload(i, n)
			body := encode(t, workload(r.namespace, name, queue, 1, 0))
			writers.Go(func() error {
				if err := r.create(t.Context(), body); err != nil || n >= perQueue/2 {
					return err
				}
				return r.admit(t.Context(), known{name: name}, queue, 1)
			})
		}
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
}

// finishInEachQueue finishes the nth Workload of each queue.
func finishInEachQueue(t *testing.T, r *requests, n int) {
	t.Helper()
	for i := range restartQueues {
		if err := r.finish(t.Context(), known{name: restartWorkload(i, n)}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitAdmissions waits for as many admissions as there are queues, and returns the times of the first and the last.
func awaitAdmissions(t *testing.T, ctx context.Context, changes <-chan change) (earliest, latest time.Time) {
	t.Helper()
	for admitted := 0; admitted < restartQueues; {
		select {
		case c := <-changes:
			switch {
			case c.err != nil:
				t.Fatalf("watching Workloads: %v", c.err)
			case c.Object.Status.Admission == nil || c.is(kueue.WorkloadFinished):
				continue
			}
			if admitted == 0 {
				earliest = c.seen
			}
			admitted, latest = admitted+1, c.seen
		case <-ctx.Done():
			t.Fatalf("%d of %d Workloads were admitted: %v", admitted, restartQueues, ctx.Err())
		}
	}
	return earliest, latest
}

// timeToList returns the time of one list of the namespace's Workloads, decoded.
func timeToList(t *testing.T, c client.Client, namespace string) time.Duration {
	t.Helper()
	began := time.Now()
	if err := c.List(t.Context(), &kueue.WorkloadList{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
