//go:build bench

package endtoend

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

var (
	scale          = flag.Float64("scale", 1, "share of the nodes and jobs; the figures hold for 1 only")
	operatorBinary = flag.String("operator", "../../../../bin/muster-operator", "the operator to measure")
	compare        = flag.Bool("compare", true, "whether to play Jobs without a queue, and with our writes undecided, as well: at full size they take longer than all else")
	operatorFlags  = flag.String("operator-flags", "", "more flags for the operator, such as --profiling")
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

// TestEndToEnd: single-GPU jobs that fill all nodes, and one gang, from the first creation until the last pod is bound by
// the real kube-scheduler. The floor is the same pods, created and bound with nothing to decide; beside it stands what
// Kubernetes' own Jobs cost without a queue.
func TestEndToEnd(t *testing.T) {
	b := newBench(t)
	b.play("warm", scaled(singles)/10, podsOf(scaled(singles)/10))
	floorPods := b.play("floor", scaled(singles), podsOf(scaled(singles)))
	floorPodsCPU := b.used
	figure.Note(fmt.Sprintf("%d pods with nothing to decide: the floor", scaled(singles)), figure.Seconds(floorPods))
	var others compared
	if *compare {
		others = b.playOthers(floorPods)
	}
	// A gang that fills its nodes, as one of 512 does, and one that does not, whose pods get their places one by one.
	filling := whole(gangPods)
	gated := filling + gpusOfNode/2
	floorWhole := b.play("floorgang", filling, podsOf(filling))
	floorGated := b.play("floorgang", gated, podsOf(gated))

	running := b.operate()
	before, operatorBefore := b.cluster.Writes(t), running.CPU(t)
	single := b.play("single", scaled(singles), jobsOf(scaled(singles), queueOfAll))
	wrote, singleCPU, operatorCPU := difference(b.wrote, before), b.used, running.CPU(t)-operatorBefore
	count, sum := running.Observed(t, bindSeconds)
	singleBind := sum / float64(max(count, 1))

	bound := time.Duration(factorMost * float64(floorPods))
	figure.Reach(t, fmt.Sprintf("%d single-GPU jobs until all are bound, and to the floor", scaled(singles)),
		fmt.Sprintf("%s, %.2f", figure.Seconds(single), single.Seconds()/floorPods.Seconds()), figure.Seconds(bound), single <= bound)
	each := float64(ours(wrote)-scaled(singles)) / float64(scaled(singles))
	figure.Reach(t, "  writes of ours a job beyond its creates", fmt.Sprintf("%.3f", each), fmt.Sprint(writesMost), each <= writesMost)
	figure.Note("  that say that pods are ready, beside these", "1.000")
	figure.Note("  CPU time of the control plane: floor, ours", figure.Seconds(floorPodsCPU)+", "+figure.Seconds(singleCPU))
	if *compare {
		others.note(single)
	}
	figure.Note("  CPU time of the operator until all are bound, until all is removed", figure.Seconds(b.operatorUsed)+", "+figure.Seconds(operatorCPU))
	b.noteWrites(wrote)
	figure.Note("  mean time from admission to the last bind", fmt.Sprintf("%.2f s", singleBind))

	for _, kind := range []struct {
		name string
		of   func(namespace, name string, pods int) client.Object
	}{{"VCJob", vcGangOf}, {"JobSet", gangOf}} {
		b.playGang(running, gpusOfNode, kind.of) // the first of its kind has the API server make what serves it; the floor was warm, too
		wholeGang := b.playGang(running, filling, kind.of)
		wholeGang.figures(b, fmt.Sprintf("one gang of %d pods, a %s, until all are bound", filling, kind.name), floorWhole)
		figure.Reach(t, "  writes of ours to its pods", fmt.Sprint(wholeGang.wrote["PATCH pods"]), "0", wholeGang.wrote["PATCH pods"] == 0)
	}
	gatedGang := b.playGang(running, gated, gangOf)
	gatedGang.figures(b, fmt.Sprintf("a JobSet of %d, which fills no nodes and whose pods are gated", gated), floorGated)
	figure.Note("peak memory of the operator", figure.MiB(running.Peak(t)))
}

// compared is what the same Jobs take without a queue, and suspended with our writes for them, undecided.
type compared struct{ jobs, jobsCPU, writes, writesCPU time.Duration }

// playOthers plays what single-GPU Jobs are compared with beside the floor.
func (b *bench) playOthers(floor time.Duration) (c compared) {
	b.Helper()
	c.jobs = b.play("jobs", scaled(singles), jobsOf(scaled(singles), ""))
	c.jobsCPU = b.used
	figure.Note("Jobs of the same pods without a queue, and to the floor", fmt.Sprintf("%s, %.2f", figure.Seconds(c.jobs), c.jobs.Seconds()/floor.Seconds()))
	c.writes = b.playBy("floorwrites", scaled(singles), jobsOf(scaled(singles), queueOfAll), b.writeAsAdmitted)
	c.writesCPU = b.used
	figure.Note("the same, suspended, and our writes for them, undecided", fmt.Sprintf("%s, %.2f", figure.Seconds(c.writes), c.writes.Seconds()/floor.Seconds()))
	return c
}

// note prints how long ours took, to them, and what CPU time they took.
func (c compared) note(ours time.Duration) {
	figure.Note("  to the Jobs without a queue, to our writes undecided", fmt.Sprintf("%.2f, %.2f", ours.Seconds()/c.jobs.Seconds(), ours.Seconds()/c.writes.Seconds()))
	figure.Note("  CPU time of the control plane: Jobs, Jobs and our writes", figure.Seconds(c.jobsCPU)+", "+figure.Seconds(c.writesCPU))
}

// TestKinds: what a job of one pod costs of each kind that has its pods made by Muster, beside batch Jobs, and which is the cheapest.
func TestKinds(t *testing.T) {
	b := newBench(t)
	jobs := scaled(singles / 10)
	b.play("warm", jobs, podsOf(jobs))
	floor := b.play("floor", jobs, podsOf(jobs))
	figure.Note(fmt.Sprintf("%d pods with nothing to decide: the floor", jobs), figure.Seconds(floor))
	figure.Note("  writes each, CPU time of the control plane", fmt.Sprintf("%.2f, %s", b.writesEach(jobs), figure.Seconds(b.used)))
	b.operate()
	for _, kind := range []struct {
		name string
		load func(namespace, name string) client.Object
	}{{"batch Jobs", queuedJob}, {"GenericJobs", genericJobOf}, {"VCJobs", vcJobOf}, {"TrainingJobs", trainingJobOf}, {"JobSets", func(namespace, name string) client.Object { return gangOf(namespace, name, 1) }}} {
		wall := b.play("single", jobs, manyOf(jobs, kind.load))
		figure.Note(fmt.Sprintf("%d %s of a pod each until all are bound, and to the floor", jobs, kind.name), fmt.Sprintf("%s, %.2f", figure.Seconds(wall), wall.Seconds()/floor.Seconds()))
		figure.Note("  writes each, CPU time of the control plane, of the operator", fmt.Sprintf("%.2f, %s, %s", b.writesEach(jobs), figure.Seconds(b.used), figure.Seconds(b.operatorUsed)))
		b.noteWrites(difference(b.wrote, b.wroteBefore))
	}
}

// writesEach is what was written a pod, by whomever, from the first creation until all were bound.
func (b *bench) writesEach(pods int) float64 {
	sum := 0.0
	for what, n := range b.wroteBound {
		sum += n - b.wroteBefore[what]
	}
	return sum / float64(pods)
}

// operate starts the operator and makes its queue. It ends with the test.
func (b *bench) operate() *operator.Operator {
	b.Helper()
	b.running = operator.Start(b.T, *operatorBinary, b.cluster, strings.Fields(*operatorFlags)...)
	b.running.AwaitReady(b.T)
	b.makeQueue()
	return b.running
}

// gang is what became of one.
type gang struct {
	wall  time.Duration
	wrote map[string]int
	// bind is from its admission to its last bind, in seconds.
	bind float64
}

// playGang plays a gang of so many pods through the queue.
func (b *bench) playGang(running *operator.Operator, pods int, of func(namespace, name string, pods int) client.Object) gang {
	b.Helper()
	before := b.cluster.Writes(b.T)
	count, sum := running.Observed(b.T, bindSeconds)
	var g gang
	g.wall = b.play("gang", pods, func(namespace string) []client.Object { return []client.Object{of(namespace, "gang", pods)} })
	g.wrote = difference(b.wrote, before)
	countAfter, sumAfter := running.Observed(b.T, bindSeconds)
	g.bind = (sumAfter - sum) / float64(max(countAfter-count, 1))
	return g
}

// figures prints how long it took, beside the same pods with nothing to decide.
func (g gang) figures(b *bench, what string, floor time.Duration) {
	b.Helper()
	bound := time.Duration(factorMost * float64(floor))
	figure.Reach(b.T, what, figure.Seconds(g.wall), figure.Seconds(bound), g.wall <= bound)
	figure.Note("  the same pods with nothing to decide: the floor", figure.Seconds(floor))
	figure.Note("  all writes of ours for it", fmt.Sprint(ours(g.wrote)))
	b.noteWrites(g.wrote)
	figure.Note("  time from admission to the last bind", fmt.Sprintf("%.2f s", g.bind))
}

// ours are the writes of the operator beyond creates: Kubernetes' own controllers put where it patches, and what binds
// pods and says how they fare is none of ours.
func ours(wrote map[string]int) int {
	sum := 0
	for _, what := range []string{"PATCH workloads", "PATCH workloads/status", "PATCH jobs", "PATCH jobs/status", "PATCH pods", "PATCH jobsets/status", "PATCH jobsets"} {
		sum += wrote[what]
	}
	return sum
}

// difference is what was written since.
func difference(after, before map[string]float64) map[string]int {
	out := map[string]int{}
	for what, n := range after {
		out[what] = int(n - before[what])
	}
	return out
}

// noteWrites prints what was written of each kind, by whomever.
func (b *bench) noteWrites(wrote map[string]int) {
	for _, what := range slices.Sorted(maps.Keys(wrote)) {
		if wrote[what] > 0 {
			figure.Note("    "+what, fmt.Sprint(wrote[what]))
		}
	}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cluster := testcluster.Get(t)
	return &bench{T: t, cluster: cluster, client: watching(t, cluster.Config), operator: watching(t, operator.Impersonate(cluster.Config)),
		server: figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid"))}
}

type bench struct {
	*testing.T
	cluster *testcluster.Cluster
	client  client.WithWatch
	// operator may write what only the operator may.
	operator client.WithWatch
	// server is the process of the control plane, and used what CPU time it took until the last load was bound.
	server figure.Process
	used   time.Duration
	// running is the operator, nil before there is one, and operatorUsed what CPU time it took until the last load was bound.
	running      *operator.Operator
	operatorUsed time.Duration
	// began is when the last load came, made when the last of its pods did.
	began, made time.Time
	// wroteBefore and wroteBound are what had been written before the last load came and when it was bound, wrote when its
	// Workloads had been told so.
	wroteBefore, wroteBound, wrote map[string]float64
}

func watching(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// play creates the objects in a namespace of their own, waits until so many pods of it are bound, and removes all of it.
func (b *bench) play(what string, pods int, load func(namespace string) []client.Object) time.Duration {
	b.Helper()
	return b.playBy(what, pods, load, func(ctx context.Context, o client.Object) error { return b.client.Create(ctx, o) })
}

// playBy is play with another way to bring an object.
func (b *bench) playBy(what string, pods int, load func(namespace string) []client.Object, place func(context.Context, client.Object) error) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	namespace := b.cluster.Namespace(b.T)
	if what == "single" || what == "gang" {
		create(b.T, b.client, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queueOfAll}, Spec: kueue.LocalQueueSpec{ClusterQueue: queueOfAll}})
	}
	objects := load(namespace)
	b.wroteBefore = b.cluster.Writes(b.T)
	used, operatorUsed := b.server.CPU(b.T), b.operatorCPU()
	b.began = time.Now()
	creating := each(objects, func(o client.Object) error {
		err := place(ctx, o)
		if err != nil {
			cancel() // nobody waits for pods that never come
		}
		return err
	})
	done := make(chan error, 1)
	go func() { done <- creating() }()
	if err := b.awaitBound(ctx, namespace, pods); err != nil {
		cancel()
		b.Fatalf("%s: %v", what, errors.Join(<-done, err))
	}
	wall := time.Since(b.began)
	b.used, b.operatorUsed = b.server.CPU(b.T)-used, b.operatorCPU()-operatorUsed
	b.wroteBound = b.cluster.Writes(b.T)
	if what == "single" {
		b.awaitTold(ctx, namespace, pods)
	}
	b.wrote = b.cluster.Writes(b.T) // before the removal, which is none of it
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.clear(ctx, namespace)
	return wall
}

// operatorCPU is what CPU time the operator has taken, if there is one.
func (b *bench) operatorCPU() time.Duration {
	b.Helper()
	if b.running == nil {
		return 0
	}
	return b.running.CPU(b.T)
}

// awaitBound returns when so many pods of the namespace are bound, and notes when the last of them was seen for the first time. A
// watch that the API server ends, as it does with one that falls behind, is begun again from a list.
func (b *bench) awaitBound(ctx context.Context, namespace string, pods int) error {
	made, bound := map[string]bool{}, map[string]bool{}
	see := func(pod *corev1.Pod) {
		if !made[pod.Name] {
			made[pod.Name], b.made = true, time.Now()
		}
		if pod.Spec.NodeName != "" {
			bound[pod.Name] = true
		}
	}
	for len(bound) < pods {
		var list corev1.PodList
		if err := b.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("%d of %d pods were bound: %w", len(bound), pods, err)
		}
		for i := range list.Items {
			see(&list.Items[i])
		}
		events, err := b.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			return err
		}
		for len(bound) < pods {
			event, open := <-events.ResultChan()
			if !open {
				break
			}
			if pod, ok := event.Object.(*corev1.Pod); ok {
				see(pod)
			}
		}
		events.Stop()
	}
	return nil
}

// each does something with all objects, side by side, and gives what waits for the end of it.
func each(objects []client.Object, do func(client.Object) error) (wait func() error) {
	var next atomic.Int64
	var workers errgroup.Group
	for range creators {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return nil
				}
				if err := do(objects[i]); err != nil {
					return err
				}
			}
		})
	}
	return workers.Wait
}

// awaitTold returns when so many Workloads of the namespace say that their pods are ready: news of pods, which waits while the API
// server is busy, so that writes can be told apart only once all of it is told.
func (b *bench) awaitTold(ctx context.Context, namespace string, workloads int) {
	b.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var list kueue.WorkloadList
		if err := b.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		told := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, kueue.WorkloadPodsReady) {
				told++
			}
		}
		if told == workloads {
			return
		}
		select {
		case <-tick.C: // a watch of thousands would cost more than to look now and then, and nothing is timed here
		case <-ctx.Done():
			b.Fatalf("%d of %d Workloads were told that their pods are ready: %v", told, workloads, ctx.Err())
		}
	}
}

// clear removes the load, and returns when nothing is left of it. Objects go one by one and side by side: to remove
// thousands by one request takes longer than a request may.
func (b *bench) clear(ctx context.Context, namespace string) {
	b.Helper()
	for _, kind := range loadKinds() {
		if err := b.client.List(ctx, kind, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		var left []client.Object
		_ = meta.EachListItem(kind, func(o runtime.Object) error { left = append(left, o.(client.Object)); return nil })
		err := each(left, func(o client.Object) error {
			return client.IgnoreNotFound(b.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground), client.GracePeriodSeconds(0)))
		})()
		if err != nil {
			b.Fatal(err)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for b.anyLeft(ctx, namespace) {
		select {
		case <-tick.C: // the end of deletions by others has no event of its own
		case <-ctx.Done():
			b.Fatalf("some of the load is left: %v", ctx.Err())
		}
	}
	b.awaitCalm(ctx)
}

// calm is for how long nothing is written of pods and Jobs before the next load comes.
const calm = 2 * time.Second

// awaitCalm returns when nobody writes any more: the Job controller goes on to take its finalizers off pods that are gone.
func (b *bench) awaitCalm(ctx context.Context) {
	b.Helper()
	tick := time.NewTicker(calm)
	defer tick.Stop()
	for before := -1.0; ; {
		now, wrote := 0.0, b.cluster.Writes(b.T)
		for what, n := range wrote {
			if strings.Contains(what, "pods") || strings.Contains(what, "jobs") || strings.Contains(what, "workloads") {
				now += n
			}
		}
		if now == before {
			return
		}
		before = now
		select {
		case <-tick.C: // that nothing happens has no event
		case <-ctx.Done():
			b.Fatalf("the load before is still being removed: %v", ctx.Err())
		}
	}
}

// anyLeft reports whether anything of the load is still there: letting go of Jobs and Workloads takes writes, which would count
// for the load that comes next.
func (b *bench) anyLeft(ctx context.Context, namespace string) bool {
	b.Helper()
	for _, kind := range loadKinds() {
		if err := b.client.List(ctx, kind, client.InNamespace(namespace), client.Limit(1)); err != nil {
			b.Fatal(err)
		}
		if meta.LenList(kind) > 0 {
			return true
		}
	}
	return false
}

// loadKinds are lists of what a load consists of.
func loadKinds() []client.ObjectList {
	return []client.ObjectList{&jobset.JobSetList{}, &tensorstack.GenericJobList{}, &volcano.JobList{}, &breezeml.TrainingJobList{}, &batchv1.JobList{}, &kueue.WorkloadList{}, &corev1.PodList{}}
}
