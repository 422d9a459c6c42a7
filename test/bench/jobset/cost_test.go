//go:build bench

package jobset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	// floorMost bounds the time until all Jobs exist, as a multiple of the floor.
	floorMost = 1.15
	// lifeMost is the most writes of a JobSet of J Jobs beyond J, from its creation to its end; queuedMost the most
	// that a Workload adds; restartMost the most of a full restart beyond 2 J.
	lifeMost, queuedMost, restartMost = 6, 3, 5
)

// TestManyJobSets measures 1,000 JobSets of 10 Jobs.
func TestManyJobSets(t *testing.T) { measure(t, scaled(1000), 10, false) }

// TestManyQueuedJobSets measures the same through a queue without limits.
func TestManyQueuedJobSets(t *testing.T) { measure(t, scaled(1000), 10, true) }

// TestLargeJobSet measures one JobSet of 1,000 Jobs.
func TestLargeJobSet(t *testing.T) { measure(t, 1, scaled(1000), false) }

// measure plays JobSets from their creation to their end, and compares their writes to the limit and the time until all
// Jobs exist to the floor.
func measure(t *testing.T, sets, jobs int, queued bool) {
	what := fmt.Sprintf("%d x %d Jobs", sets, jobs)
	if queued {
		what += ", queued"
	}
	floor := newBench(t).floor(sets, jobs)
	b := newBench(t)
	if queued {
		b.makeQueue()
	}
	before := b.cluster.Writes(t)
	waitEnded, counts := b.untilEnded(sets)
	took := b.creation(sets, jobs, queued)
	b.setJobs(sets*jobs, ready)
	b.setJobs(sets*jobs, succeeded)
	waitEnded()
	b.awaitNoWrites()
	total, each := b.writes(before)
	most := jobs + lifeMost
	if queued {
		most += queuedMost
	}
	per := float64(total-counts.total()) / float64(sets)
	figure.Reach(t, what+": writes a JobSet", fmt.Sprintf("%.2f", per), fmt.Sprint(most), per <= float64(most))
	counts.figures(t, sets)
	for _, kind := range sorted(each) {
		figure.Note("  "+kind, fmt.Sprint(each[kind]))
	}
	b.events()
	if queued {
		figure.Note("  until all Jobs exist", figure.Seconds(took))
		return
	}
	took, floor = typical(t, sets, jobs, took, floor)
	ratio := took.Seconds() / floor.Seconds()
	figure.Reach(t, "  until all Jobs exist, x the floor", fmt.Sprintf("%.2f", ratio), fmt.Sprint(floorMost),
		ratio <= floorMost)
	figure.Note("  the time, and the floor", figure.Seconds(took)+", "+figure.Seconds(floor))
}

// typical measures a single JobSet and its floor twice more, and returns the pair with the median ratio: they take only
// a few seconds, in which other load on the machine has a large share. Of many JobSets it returns the given times.
func typical(t *testing.T, sets, jobs int, took, floor time.Duration) (time.Duration, time.Duration) {
	if sets > 1 {
		return took, floor
	}
	type pair struct{ took, floor time.Duration }
	pairs := []pair{{took, floor}}
	for range 2 {
		floor := newBench(t).floor(sets, jobs)
		pairs = append(pairs, pair{newBench(t).creation(sets, jobs, false), floor})
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Compare(a.took.Seconds()/a.floor.Seconds(), b.took.Seconds()/b.floor.Seconds())
	})
	return pairs[1].took, pairs[1].floor
}

// creation creates the JobSets and returns the time until the last Job exists.
func (b *bench) creation(sets, jobs int, queued bool) time.Duration {
	b.Helper()
	waitCreated := b.untilCreated(sets*jobs, "")
	began := time.Now()
	b.each(sets, jobSetsAtOnce, func(ctx context.Context, i int) error {
		js := b.jobSet(name(i), jobs)
		if queued {
			js.Labels = map[string]string{kueue.QueueLabel: "q"}
		}
		return b.client.Create(ctx, js)
	})
	return waitCreated().Sub(began)
}

// awaitNoWrites waits until there were no writes for three seconds: the operator finishes a Workload after its JobSet,
// and records events after both.
func (b *bench) awaitNoWrites() {
	b.Helper()
	const quiet = 3 * time.Second
	for last := b.cluster.Writes(b.T); ; {
		select {
		case <-time.After(quiet): // there is no event after the last write
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
		next := b.cluster.Writes(b.T)
		same := len(next) == len(last)
		for what, count := range next {
			same = same && last[what] == count
		}
		if same {
			return
		}
		last = next
	}
}

// floor creates the same JobSets, Services and Jobs and writes one status for each JobSet, with the operator's
// concurrency, and returns the time until the last Job exists.
func (b *bench) floor(sets, jobs int) time.Duration {
	b.Helper()
	waitCreated := b.untilCreated(sets*jobs, "")
	began := time.Now()
	b.each(sets, jobSetsAtOnce, func(ctx context.Context, i int) error {
		js := b.jobSet(name(i), jobs)
		js.Spec.ManagedBy = ptr.To(floorManager)
		if err := b.client.Create(ctx, js); err != nil {
			return err
		}
		if err := b.client.Create(ctx, b.service(js)); err != nil {
			return err
		}
		create := func(ctx context.Context, index int) error { return b.client.Create(ctx, b.job(js, index)) }
		if err := concurrently(ctx, jobs, writesAtOnce, create); err != nil {
			return err
		}
		after := js.DeepCopy()
		after.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "r"}}
		return b.client.Status().Patch(ctx, after, client.MergeFrom(js))
	})
	return waitCreated().Sub(began)
}

func (b *bench) service(js *jobset.JobSet) *corev1.Service {
	own := map[string]string{jobset.JobSetNameKey: js.Name}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: js.Name, Namespace: js.Namespace, Labels: own,
		OwnerReferences: owner(js)},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: own, PublishNotReadyAddresses: true}}
}

func owner(js *jobset.JobSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(js, jobset.GroupVersion.WithKind("JobSet"))}
}

// job returns a Job with as many labels and annotations as the operator's.
func (b *bench) job(js *jobset.JobSet, index int) *batchv1.Job {
	keys := map[string]string{}
	for _, key := range []string{jobset.JobSetNameKey, jobset.JobSetUIDKey, jobset.ReplicatedJobNameKey,
		jobset.ReplicatedJobReplicas, jobset.GlobalReplicasKey, jobset.JobIndexKey, jobset.JobGlobalIndexKey,
		jobset.GroupNameKey, jobset.GroupReplicasKey, jobset.JobGroupIndexKey, jobset.JobKey, jobset.RestartAttemptKey,
		jobset.JobRestartAttemptKey} {
		keys[key] = js.Name
	}
	rj := js.Spec.ReplicatedJobs[0]
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", js.Name, rj.Name, index),
		Namespace: js.Namespace,
		Labels:    keys, Annotations: keys, OwnerReferences: owner(js)}, Spec: *rj.Template.Spec.DeepCopy()}
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	job.Spec.Template.Labels, job.Spec.Template.Annotations, job.Spec.Template.Spec.Subdomain = keys, keys, js.Name
	return job
}

// TestFullRestart measures the restart of a JobSet of 1,000 Jobs of which one fails: all Jobs are replaced.
func TestFullRestart(t *testing.T) {
	b := newBench(t)
	jobs := scaled(1000)
	js := b.jobSet("js", jobs)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1}
	waitCreated := b.untilCreated(jobs, "")
	if err := b.client.Create(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	waitCreated()
	b.setJobs(jobs, ready)
	b.awaitNoWrites()
	before := b.cluster.Writes(t)
	counts := newCountWrites()
	waitReplaced := b.untilCreated(jobs, "1")
	waitRestarted := follow(b, &jobset.JobSetList{}, "the restart is over", func(o client.Object) bool {
		js := o.(*jobset.JobSet)
		counts.see(js)
		return len(js.Status.Conditions) > 0 && js.Status.Conditions[0].Status == metav1.ConditionFalse
	})
	var job batchv1.Job
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "js-r-0"}, &job); err != nil {
		t.Fatal(err)
	}
	failed(&job)
	began := time.Now()
	if err := b.client.Status().Update(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	took := waitReplaced().Sub(began)
	b.setJobs(jobs, ready)
	waitRestarted()
	b.awaitNoWrites()
	total, each := b.writes(before)
	most := 2*jobs + restartMost
	what := fmt.Sprintf("a full restart of %d Jobs: writes", jobs)
	figure.Reach(t, what, fmt.Sprint(total-counts.total()), fmt.Sprint(most), total-counts.total() <= most)
	counts.figures(t, 1)
	figure.Note("  until all Jobs are replaced", figure.Seconds(took))
	for _, kind := range sorted(each) {
		figure.Note("  "+kind, fmt.Sprint(each[kind]))
	}
	b.events()
}
