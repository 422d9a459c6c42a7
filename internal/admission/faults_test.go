package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/workload"
)

// fault is what happens to one write of a Workload.
type fault int

const (
	noFault fault = iota
	// fails: the write takes no effect, and the writer gets an error.
	fails
	// isLost: the write takes effect, and the writer gets an error that does not say so.
	isLost
	// killsBefore and killsAfter end the operator before or after the write, and another one starts.
	killsBefore
	killsAfter
)

var faults = map[fault]string{fails: "fails", isLost: "is lost", killsBefore: "kills before it",
	killsAfter: "kills after it"}

// faultRun runs admission with a fault at the k-th write of a Workload. Evicted Workloads release their quota.
type faultRun struct {
	*running
	fault  fault
	at     int32
	writes atomic.Int32
	struck atomic.Bool
	dead   atomic.Bool
	killed chan struct{}
	stop   func()
	over   []string // times at which the quota was exceeded; guarded by the world's lock
}

// newFaultRun returns a run with the fault at the given write of a Workload.
func newFaultRun(t *testing.T, f fault, at int32, objects ...client.Object) *faultRun {
	w := admissiontest.NewWorld(t, objects...)
	d := &faultRun{running: &running{w, &feed{world: w}}, fault: f, at: at, killed: make(chan struct{}, 1)}
	w.Before, w.After = d.before, d.after
	w.Notify = func(before, after client.Object) {
		d.feed.deliver(before, after)
		d.count(after)
	}
	d.restart()
	t.Cleanup(func() { d.stop() })
	return d
}

// restart starts admission like a new process, which knows only the state of the API server.
func (f *faultRun) restart() {
	if f.stop != nil {
		f.stop()
	}
	f.Mu.Lock()
	f.feed.handlers = map[string][]toolscache.ResourceEventHandler{}
	f.Mu.Unlock()
	f.dead.Store(false)
	l := newLoop(manager{feed: f.feed}, config.Default(), clock.RealClock{})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := l.Start(ctx); err != nil {
			f.T.Error(err)
		}
	})
	f.stop = func() { cancel(); done.Wait() }
}

var errDead = errors.New("the operator is dead")

// kill ends the operator; its writes fail from then on.
func (f *faultRun) kill() error {
	f.dead.Store(true)
	f.killed <- struct{}{}
	return errDead
}

func (f *faultRun) before(write string) error {
	switch {
	case strings.HasPrefix(write, "create"): // not a write of the operator
		return nil
	case f.dead.Load():
		return errDead
	case !strings.HasPrefix(write, "status Workload") || f.writes.Add(1) != f.at:
		return nil
	}
	switch f.fault {
	case fails:
		return apierrors.NewServiceUnavailable("overloaded")
	case killsBefore:
		return f.kill()
	}
	return nil
}

func (f *faultRun) after(write string) error {
	if !strings.HasPrefix(write, "status Workload") || f.writes.Load() != f.at || f.struck.Swap(true) {
		return nil
	}
	switch f.fault {
	case isLost:
		return apierrors.NewTimeoutError("no answer", 1)
	case killsAfter:
		return f.kill()
	}
	return nil
}

// count records when usage exceeds the queue's four cpu. The caller holds the world's lock.
func (f *faultRun) count(written client.Object) {
	w, ok := written.(*kueue.Workload)
	if !ok || w.Status.Admission == nil || workload.IsEvicted(w) {
		return
	}
	var all kueue.WorkloadList
	if err := f.List(context.Background(), &all); err != nil {
		f.over = append(f.over, err.Error())
		return
	}
	var held []string
	for i := range all.Items {
		if all.Items[i].Status.Admission != nil {
			held = append(held, all.Items[i].Name)
		}
	}
	if len(held) > 1 {
		f.over = append(f.over, fmt.Sprintf("%v", held))
	}
}

// until waits until the condition holds for the Workload. Meanwhile evicted workloads release their quota, and a
// killed operator is restarted.
func (f *faultRun) until(name, condition string) {
	f.T.Helper()
	timeout := time.After(admissiontest.Never)
	for {
		for _, name := range []string{"low", "high"} {
			f.giveBack(name)
		}
		var w kueue.Workload
		if err := f.Get(f.T.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &w); err != nil {
			f.T.Fatal(err)
		}
		if slices.Contains(admissiontest.Conditions(w.Status.Conditions), condition) {
			return
		}
		select {
		case <-f.Wrote:
		case <-f.killed:
			f.restart()
		case <-timeout:
			f.T.Fatalf("timed out waiting until %s has the condition %s; conditions: %v; writes: %v", name, condition,
				admissiontest.Conditions(w.Status.Conditions), f.Written())
		}
	}
}

// giveBack releases the quota of an evicted Workload, as its owner does when its pods are gone.
func (f *faultRun) giveBack(name string) {
	f.T.Helper()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var w kueue.Workload
	if err := f.Get(f.T.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &w); err != nil ||
		!workload.IsEvicted(&w) || w.Status.Admission == nil {
		return
	}
	workload.GiveBack(&w, admissiontest.Now)
	if err := f.Status().Update(f.T.Context(), &w); err != nil {
		f.T.Error(err)
	}
	f.feed.deliver(&w, &w)
}

// play admits low, preempts it for high, and returns their final states.
func (f *faultRun) play() []string {
	f.T.Helper()
	f.until("low", isAdmitted)
	high := admissiontest.NewWorkload("high", 4, quantities("cpu", "1"))
	high.Spec.Priority = ptr.To[int32](1)
	f.Put(high)
	f.until("high", isAdmitted)
	f.until("low", "QuotaReserved=False WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 4 more needed")
	var end []string
	for _, name := range []string{"low", "high"} {
		w := f.Workload(name)
		end = append(end, fmt.Sprintf("%s holds %v", name, w.Status.Admission != nil))
		end = append(end, admissiontest.Conditions(w.Status.Conditions)...)
		if stats := w.Status.SchedulingStats; stats != nil {
			end = append(end, fmt.Sprintf("evictions %+v", stats.Evictions))
		}
	}
	slices.Sort(end)
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.over) > 0 {
		f.T.Errorf("usage exceeded the quota: %v", f.over)
	}
	return end
}

// TestFailedWritesConvergeToTheSameState: the end of a preemption is the same if any one of its writes is lost or
// rejected, or is the last one of the operator.
func TestFailedWritesConvergeToTheSameState(t *testing.T) {
	stage := func(t *testing.T, f fault, at int32) *faultRun {
		q := admissiontest.NewClusterQueue("cq", "4")
		q.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
		return newFaultRun(t, f, at, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"), q,
			admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewWorkload("low", 4, quantities("cpu", "1")))
	}
	undisturbed := stage(t, noFault, 0)
	want := undisturbed.play()
	for at := range undisturbed.writes.Load() {
		for f := fails; f <= killsAfter; f++ {
			t.Run(fmt.Sprintf("write %d %s", at+1, faults[f]), func(t *testing.T) {
				if diff := cmp.Diff(want, stage(t, f, at+1).play()); diff != "" {
					t.Errorf("final states (-without fault +with fault):\n%s", diff)
				}
			})
		}
	}
}
