//go:build bench

package jobset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/test/bench/figure"
)

// follow shows see the objects of the namespace, and each again when it changes, until it
// says that all has been seen. A watch that the API server ends, because it is busy, is
// begun anew.
func follow[L client.ObjectList](b *bench, list L, what string, see func(client.Object) (done bool)) (wait func() time.Time) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	done := make(chan time.Time, 1)
	began := make(chan struct{})
	go func() {
		defer cancel()
		defer close(done)
		var once sync.Once
		begin := func() { once.Do(func() { close(began) }) }
		defer begin()
		for ctx.Err() == nil {
			if followOnce(ctx, b, list, see, begin) {
				done <- time.Now()
				return
			}
		}
	}()
	<-began
	return func() time.Time {
		b.Helper()
		at, ok := <-done
		if !ok {
			b.Fatalf("it took more than %s until %s", limit, what)
		}
		return at
	}
}

// followOnce follows for as long as one watch lasts.
func followOnce[L client.ObjectList](ctx context.Context, b *bench, list L, see func(client.Object) bool, began func()) (done bool) {
	if err := b.client.List(ctx, list, client.InNamespace(b.namespace)); err != nil {
		return false
	}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		done = done || see(o.(client.Object))
		return nil
	})
	if err != nil || done {
		return done
	}
	events, err := b.client.Watch(ctx, list, client.InNamespace(b.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return false
	}
	defer events.Stop()
	began()
	for event := range events.ResultChan() {
		if object, ok := event.Object.(client.Object); ok && event.Type != watch.Error && event.Type != watch.Deleted && see(object) {
			return true
		}
	}
	return false
}

// made follows the creation of n Jobs that are of the attempt.
func (b *bench) made(n int, attempt string) (wait func() time.Time) {
	seen := map[types.UID]bool{}
	return follow(b, &batchv1.JobList{}, "all Jobs are there", func(job client.Object) bool {
		if attempt == "" || job.GetLabels()[jobset.RestartAttemptKey] == attempt {
			seen[job.GetUID()] = true
		}
		return len(seen) == n
	})
}

// told is what the status of JobSets said one after the other.
type told struct {
	last map[string]*jobset.JobSet
	// since is when each was seen first, and alone counts the writes of its status that told counts alone.
	since map[string]time.Time
	alone map[string]int
	// fastest is the most of those a second of any of them.
	fastest float64
}

func newTold() *told {
	return &told{last: map[string]*jobset.JobSet{}, since: map[string]time.Time{}, alone: map[string]int{}}
}

// see takes in a JobSet as it is now.
func (c *told) see(js *jobset.JobSet) {
	uncounted := func(s jobset.JobSetStatus) jobset.JobSetStatus {
		s.ReplicatedJobsStatus = nil
		return s
	}
	before := c.last[js.Name]
	c.last[js.Name] = js
	if before == nil {
		c.since[js.Name] = time.Now()
		return
	}
	if !equality.Semantic.DeepEqual(before.Status, js.Status) && equality.Semantic.DeepEqual(uncounted(before.Status), uncounted(js.Status)) {
		c.alone[js.Name]++
		// The first comes when it comes, each other a second later.
		c.fastest = max(c.fastest, float64(c.alone[js.Name]-1)/max(1, time.Since(c.since[js.Name]).Seconds()))
	}
}

// sum is how many writes told counts alone.
func (c *told) sum() (n int) {
	for _, count := range c.alone {
		n += count
	}
	return n
}

// figures are printed beside the writes that are bounded by the number of Jobs.
func (c *told) figures(t *testing.T, sets int) {
	figure.Note("  beside them count-only status writes a JobSet", fmt.Sprintf("%.2f", float64(c.sum())/float64(sets)))
	figure.Reach(t, "  the most of these a second", fmt.Sprintf("%.2f", c.fastest), "1", c.fastest <= 1)
}

// ended follows n JobSets to their end, and what their status tells.
func (b *bench) ended(n int) (wait func() time.Time, counts *told) {
	counts = newTold()
	over := map[string]bool{}
	wait = follow(b, &jobset.JobSetList{}, "all JobSets have ended", func(o client.Object) bool {
		js := o.(*jobset.JobSet)
		counts.see(js)
		if js.Status.TerminalState != "" {
			over[js.Name] = true
		}
		return len(over) == n
	})
	return wait, counts
}

// jobsAre says of every Job of the namespace how it fares.
func (b *bench) jobsAre(n int, status func(*batchv1.Job)) {
	b.Helper()
	var list batchv1.JobList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	if len(list.Items) != n {
		b.Fatalf("%d Jobs, want %d", len(list.Items), n)
	}
	b.each(n, writersOfStates, func(ctx context.Context, i int) error {
		status(&list.Items[i])
		return b.client.Status().Update(ctx, &list.Items[i])
	})
}

// writersOfStates write side by side: enough to keep two cores busy.
const writersOfStates = 8

func ready(job *batchv1.Job) {
	job.Status.StartTime, job.Status.Active, job.Status.Ready = ptr.To(metav1.Now()), 1, ptr.To[int32](1)
}

func succeeded(job *batchv1.Job) {
	now := metav1.Now()
	job.Status.Active, job.Status.Ready, job.Status.Succeeded, job.Status.CompletedIndexes = 0, ptr.To[int32](0), 1, "0"
	job.Status.CompletionTime = &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
}

func failed(job *batchv1.Job) {
	now := metav1.Now()
	job.Status.Active, job.Status.Ready, job.Status.Failed = 0, ptr.To[int32](0), 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: batchv1.JobReasonBackoffLimitExceeded})
	}
}

// writes are those of the operator since an earlier count: all, less what the benchmark
// wrote itself and what Kubernetes' own controllers do.
func (b *bench) writes(before map[string]float64) (total int, each map[string]int) {
	b.Helper()
	each = map[string]int{}
	for what, count := range b.cluster.Writes(b.T) {
		wrote := int(count - before[what])
		_, resource, _ := strings.Cut(what, " ")
		switch {
		case wrote == 0, what == "PUT jobs/status", what == "POST jobsets", what == "PATCH jobs":
			continue // the benchmark's, and the garbage collector's, who lets Jobs go
		case resource == "clusterqueues/status" || resource == "localqueues/status" || strings.HasPrefix(resource, "endpoint"):
			continue // of queues, a few for all JobSets; and of Services
		case slices.Contains([]string{"namespaces", "configmaps", "serviceaccounts", "clusterqueues", "localqueues"}, resource):
			continue
		}
		each[what] = wrote
		total += wrote
	}
	return total, each
}

// events prints how many of each reason people were told.
func (b *bench) events() {
	b.Helper()
	var list eventsv1.EventList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	told := map[string]int{}
	for i := range list.Items {
		told["event "+list.Items[i].Regarding.Kind+" "+list.Items[i].Reason]++
	}
	for _, reason := range sorted(told) {
		figure.Note("  "+reason, fmt.Sprint(told[reason]))
	}
}

func sorted(each map[string]int) []string { return slices.Sorted(maps.Keys(each)) }
