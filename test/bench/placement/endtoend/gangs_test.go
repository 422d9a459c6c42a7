//go:build bench

package endtoend

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

// podsPerSync is the number of pods that the Job controller creates in one sync of a Job.
const podsPerSync = 500

// TestGangs measures gangs of each kind against the floor, and against a Job and a JobSet of the same pods
// without a queue. One gang has as many pods as the Job controller creates in one sync, the other more.
func TestGangs(t *testing.T) {
	b := newBench(t)
	sizes := slices.Compact([]int{fullNodes(podsPerSync), fullNodes(gangPods)}) // equal if scaled down
	b.operate()
	b.play("warm", gpusOfNode, freeJobSet(gpusOfNode))
	kinds := []gangKind{{name: "VCJob", of: vcGangOf}, {name: "JobSet", of: gangOf}}
	for i := range kinds {
		kinds[i].podsOf = b.podsLike("gang", gpusOfNode, kinds[i].load(gpusOfNode))
	}
	b.rest()
	b.play("warm", sizes[0], kinds[0].podsOf(sizes[0]))
	b.play("warm", 1, jobOf(1))
	floors := map[string]map[int]time.Duration{}
	for _, kind := range kinds {
		floors[kind.name] = map[int]time.Duration{}
		for _, pods := range sizes {
			floor := b.play("floorgang", pods, kind.podsOf(pods))
			floors[kind.name][pods] = floor
			b.phases(fmt.Sprintf("%d pods of a %s with nothing to decide: the floor", pods, kind.name), pods, floor, floor)
		}
	}
	for _, pods := range sizes {
		b.phases(fmt.Sprintf("%d as a Job without a queue", pods), pods, b.play("job", pods, jobOf(pods)),
			floors["VCJob"][pods])
	}
	running := b.operate()
	b.play("warm", gpusOfNode, freeJobSet(gpusOfNode))
	for _, pods := range sizes {
		b.phases(fmt.Sprintf("%d as a JobSet without a queue", pods), pods, b.play("jobset", pods, freeJobSet(pods)),
			floors["JobSet"][pods])
	}
	for _, kind := range kinds {
		b.playGang(running, gpusOfNode, kind)
		for _, pods := range sizes {
			g := b.playGang(running, pods, kind)
			b.phases(fmt.Sprintf("a %s of %d, admitted %.2f s before its last bind", kind.name, pods, g.bind), pods, g.wall,
				floors[kind.name][pods])
		}
	}
}

// gangKind is an API in which gangs are created.
type gangKind struct {
	name string
	of   func(namespace, name string, pods int) client.Object
	// podsOf returns loads of the pods of such a gang, without the gang.
	podsOf func(n int) func(namespace string) []client.Object
	// floor is how long the pods alone take.
	floor time.Duration
}

// load returns a load of one gang.
func (g gangKind) load(pods int) func(namespace string) []client.Object {
	return func(namespace string) []client.Object { return []client.Object{g.of(namespace, "gang", pods)} }
}

// fullNodes scales a number of pods and rounds it down to a multiple of a node's GPUs.
func fullNodes(pods int) int { return max(1, scaled(pods)/gpusOfNode) * gpusOfNode }

// jobOf returns a load of one Job without a queue.
func jobOf(pods int) func(string) []client.Object {
	return func(namespace string) []client.Object {
		job := queuedJob(namespace, "job").(*batchv1.Job)
		job.Labels, job.Spec.Suspend, job.Spec.Template = nil, nil, template(true)
		job.Spec.Parallelism, job.Spec.Completions, job.Spec.CompletionMode = ptr.To(int32(pods)), ptr.To(int32(pods)),
			ptr.To(batchv1.IndexedCompletion)
		return []client.Object{job}
	}
}

// freeJobSet returns a load of one JobSet without a queue.
func freeJobSet(pods int) func(string) []client.Object {
	return func(namespace string) []client.Object {
		set := gangOf(namespace, "gang", pods).(*jobset.JobSet)
		set.Labels, set.Spec.ReplicatedJobs[0].Template.Spec.Template = nil, template(true)
		return []client.Object{set}
	}
}

// phases prints how long the last load took, when its last pod was created, and what it cost.
func (b *bench) phases(what string, pods int, wall, floor time.Duration) {
	b.Helper()
	figure.Note(what+" until all are bound, and to the floor",
		fmt.Sprintf("%s, %.2f", figure.Seconds(wall), wall.Seconds()/floor.Seconds()))
	figure.Note("    until the last pod is created", figure.Seconds(b.lastCreated.Sub(b.began)))
	figure.Note("    writes a pod; CPU time of the control plane, of the operator",
		fmt.Sprintf("%.2f; %s, %s", b.writesEach(pods), figure.Seconds(b.used), figure.Seconds(b.operatorUsed)))
	b.noteWrites(difference(b.wroteBound, b.wroteBefore))
}

// gang holds the measurements of one gang.
type gang struct {
	wall  time.Duration
	wrote map[string]int
	// bind is the time from admission to the last bind, in seconds.
	bind float64
}

// playGang plays a gang through the queue.
func (b *bench) playGang(running *operator.Operator, pods int, kind gangKind) gang {
	b.Helper()
	before := b.cluster.Writes(b.T)
	count, sum := running.Observed(b.T, bindSeconds)
	var g gang
	g.wall = b.play("gang", pods, kind.load(pods))
	g.wrote = difference(b.wrote, before)
	countAfter, sumAfter := running.Observed(b.T, bindSeconds)
	g.bind = (sumAfter - sum) / float64(max(countAfter-count, 1))
	return g
}

// figures prints the measurements of a gang next to the floor.
func (g gang) figures(b *bench, what string, floor time.Duration) {
	b.Helper()
	bound := time.Duration(factorMost * float64(floor))
	figure.Reach(b.T, what, figure.Seconds(g.wall), figure.Seconds(bound), g.wall <= bound)
	figure.Note("  the same pods with nothing to decide: the floor", figure.Seconds(floor))
	figure.Note("  all of Muster's writes for it", fmt.Sprint(operatorWrites(g.wrote)))
	b.noteWrites(g.wrote)
	figure.Note("  time from admission to the last bind", fmt.Sprintf("%.2f s", g.bind))
}
