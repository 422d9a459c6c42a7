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

// follow calls see for the objects of the namespace, and again for each that changes, until see returns true. It
// returns once the watch is open. The returned function waits for the end, and returns when that was; what completes
// "timed out waiting until". A watch that the API server ends because it is busy starts again with a list.
func follow[L client.ObjectList](b *bench, list L, what string,
	see func(client.Object) (done bool)) (wait func() time.Time) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	done := make(chan time.Time, 1)
	open := make(chan struct{})
	go func() {
		defer cancel()
		defer close(done)
		opened := sync.OnceFunc(func() { close(open) })
		defer opened()
		for ctx.Err() == nil {
			if followOnce(ctx, b, list, see, opened) {
				done <- time.Now()
				return
			}
		}
	}()
	<-open
	return func() time.Time {
		b.Helper()
		at, ok := <-done
		if !ok {
			b.Fatalf("timed out after %s waiting until %s", patience, what)
		}
		return at
	}
}

// followOnce follows until see returns true or the watch ends, and calls opened when the watch is open.
func followOnce[L client.ObjectList](ctx context.Context, b *bench, list L, see func(client.Object) bool,
	opened func()) (done bool) {
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
	events, err := b.client.Watch(ctx, list, client.InNamespace(b.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return false
	}
	defer events.Stop()
	opened()
	for event := range events.ResultChan() {
		if object, ok := event.Object.(client.Object); ok && event.Type != watch.Error &&
			event.Type != watch.Deleted && see(object) {
			return true
		}
	}
	return false
}

// untilCreated starts to watch for n Jobs of the restart attempt, or of any if it is empty, and returns a function that
// waits for the last one.
func (b *bench) untilCreated(n int, attempt string) (wait func() time.Time) {
	seen := map[types.UID]bool{}
	return follow(b, &batchv1.JobList{}, "all Jobs exist", func(job client.Object) bool {
		if attempt == "" || job.GetLabels()[jobset.RestartAttemptKey] == attempt {
			seen[job.GetUID()] = true
		}
		return len(seen) == n
	})
}

// countWrites counts the status writes of JobSets that change only replicatedJobsStatus, the counts of Jobs.
type countWrites struct {
	last map[string]*jobset.JobSet
	// firstSeen and writes hold, for each JobSet, when it was first seen, and the number of such writes.
	firstSeen map[string]time.Time
	writes    map[string]int
	// rate is the highest number of such writes a second of any JobSet.
	rate float64
}

func newCountWrites() *countWrites {
	return &countWrites{last: map[string]*jobset.JobSet{}, firstSeen: map[string]time.Time{}, writes: map[string]int{}}
}

// see compares a JobSet to its last seen version.
func (c *countWrites) see(js *jobset.JobSet) {
	withoutCounts := func(s jobset.JobSetStatus) jobset.JobSetStatus {
		s.ReplicatedJobsStatus = nil
		return s
	}
	before := c.last[js.Name]
	c.last[js.Name] = js
	if before == nil {
		c.firstSeen[js.Name] = time.Now()
		return
	}
	if !equality.Semantic.DeepEqual(before.Status, js.Status) &&
		equality.Semantic.DeepEqual(withoutCounts(before.Status), withoutCounts(js.Status)) {
		c.writes[js.Name]++
		// The first may be written at once, each other a second after the one before.
		c.rate = max(c.rate, float64(c.writes[js.Name]-1)/max(1, time.Since(c.firstSeen[js.Name]).Seconds()))
	}
}

// total returns the number of these writes for all JobSets.
func (c *countWrites) total() (n int) {
	for _, count := range c.writes {
		n += count
	}
	return n
}

// figures prints these writes, which do not count for the limits that depend on the number of Jobs.
func (c *countWrites) figures(t *testing.T, sets int) {
	figure.Note("  in addition, count-only status writes a JobSet", fmt.Sprintf("%.2f", float64(c.total())/float64(sets)))
	figure.Reach(t, "  the most of these a second", fmt.Sprintf("%.2f", c.rate), "1", c.rate <= 1)
}

// untilEnded starts to watch n JobSets, and returns a function that waits until all have ended, and the count-only
// writes of their status.
func (b *bench) untilEnded(n int) (wait func() time.Time, counts *countWrites) {
	counts = newCountWrites()
	ended := map[string]bool{}
	wait = follow(b, &jobset.JobSetList{}, "all JobSets have ended", func(o client.Object) bool {
		js := o.(*jobset.JobSet)
		counts.see(js)
		if js.Status.TerminalState != "" {
			ended[js.Name] = true
		}
		return len(ended) == n
	})
	return wait, counts
}

// setJobs writes the status of every Job of the namespace, in place of the Job controller. There must be n Jobs.
func (b *bench) setJobs(n int, status func(*batchv1.Job)) {
	b.Helper()
	var list batchv1.JobList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	if len(list.Items) != n {
		b.Fatalf("the namespace has %d Jobs, want %d", len(list.Items), n)
	}
	b.each(n, statusWriters, func(ctx context.Context, i int) error {
		status(&list.Items[i])
		return b.client.Status().Update(ctx, &list.Items[i])
	})
}

// statusWriters is how many status writes run at a time: enough to keep two cores busy.
const statusWriters = 8

func ready(job *batchv1.Job) {
	job.Status.StartTime, job.Status.Active, job.Status.Ready = ptr.To(metav1.Now()), 1, ptr.To[int32](1)
}

func succeeded(job *batchv1.Job) {
	now := metav1.Now()
	job.Status.Active, job.Status.Ready, job.Status.Succeeded, job.Status.CompletedIndexes = 0, ptr.To[int32](0), 1, "0"
	job.Status.CompletionTime = &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions,
			batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
}

func failed(job *batchv1.Job) {
	now := metav1.Now()
	job.Status.Active, job.Status.Ready, job.Status.Failed = 0, ptr.To[int32](0), 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue,
			LastTransitionTime: now, Reason: batchv1.JobReasonBackoffLimitExceeded})
	}
}

// writes returns the number of the operator's writes since the count before, in all and by verb and resource: all
// writes, less those of the benchmark and of Kubernetes' own controllers.
func (b *bench) writes(before map[string]float64) (total int, each map[string]int) {
	b.Helper()
	each = map[string]int{}
	for what, count := range b.cluster.Writes(b.T) {
		wrote := int(count - before[what])
		_, resource, _ := strings.Cut(what, " ")
		switch {
		case wrote == 0, what == "PUT jobs/status", what == "POST jobsets", what == "PATCH jobs":
			continue // made by the benchmark, and by the garbage collector, which removes finalizers of Jobs
		case resource == "clusterqueues/status" || resource == "localqueues/status" ||
			strings.HasPrefix(resource, "endpoint"):
			continue // status of queues, a few for all JobSets; and endpoints, written by Kubernetes for Services
		case slices.Contains([]string{"namespaces", "configmaps", "serviceaccounts", "clusterqueues",
			"localqueues"}, resource):
			continue
		}
		each[what] = wrote
		total += wrote
	}
	return total, each
}

// events prints the number of events by kind of object and reason.
func (b *bench) events() {
	b.Helper()
	var list eventsv1.EventList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	counts := map[string]int{}
	for i := range list.Items {
		counts["event "+list.Items[i].Regarding.Kind+" "+list.Items[i].Reason]++
	}
	for _, reason := range sorted(counts) {
		figure.Note("  "+reason, fmt.Sprint(counts[reason]))
	}
}

func sorted(each map[string]int) []string { return slices.Sorted(maps.Keys(each)) }
