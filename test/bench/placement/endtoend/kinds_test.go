//go:build bench

package endtoend

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/test/bench/figure"
)

// TestKinds compares the cost of one-pod jobs of each kind. The floor is the pods of VCJobs, which have the least
// metadata.
func TestKinds(t *testing.T) {
	b := newBench(t)
	jobs := scaled(singles / 10)
	b.operate()
	podsOf := b.podsLike("single", 1, manyOf(1, vcJobOf))
	b.rest()
	b.play("warm", jobs, podsOf(jobs))
	floor := b.play("floor", jobs, podsOf(jobs))
	figure.Note(fmt.Sprintf("%d pods with nothing to decide: the floor", jobs), figure.Seconds(floor))
	figure.Note("  writes each, CPU time of the control plane",
		fmt.Sprintf("%.2f, %s", b.writesEach(jobs), figure.Seconds(b.used)))
	b.operate()
	for _, kind := range []struct {
		name string
		load func(namespace, name string) client.Object
	}{{"batch Jobs", queuedJob}, {"GenericJobs", genericJobOf}, {"VCJobs", vcJobOf}, {"TrainingJobs", trainingJobOf},
		{"JobSets", func(namespace, name string) client.Object { return gangOf(namespace, name, 1) }}} {
		wall := b.play("single", jobs, manyOf(jobs, kind.load))
		figure.Note(fmt.Sprintf("%d %s of a pod each until all are bound, and to the floor", jobs, kind.name),
			fmt.Sprintf("%s, %.2f", figure.Seconds(wall), wall.Seconds()/floor.Seconds()))
		figure.Note("  writes each, CPU time of the control plane, of the operator",
			fmt.Sprintf("%.2f, %s, %s", b.writesEach(jobs), figure.Seconds(b.used), figure.Seconds(b.operatorUsed)))
		b.noteWrites(difference(b.wrote, b.wroteBefore))
	}
}

// writesEach returns the number of writes per pod, by any client, from the first creation until all pods
// were bound.
func (b *bench) writesEach(pods int) float64 {
	sum := 0.0
	for what, n := range b.wroteBound {
		sum += n - b.wroteBefore[what]
	}
	return sum / float64(pods)
}
