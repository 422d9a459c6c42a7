package genericjob

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// atRest is a job of so many replicas that all run, and its pods.
func atRest(replicas int32) (*tensorstack.GenericJob, []client.Object) {
	job := newJob().with("worker", replicas)
	var pods []jobstest.Pod
	for i := range replicas {
		pods = append(pods, pod(fmt.Sprintf("job-worker-%d", i)).Running())
	}
	children := of(pods...)
	p := plan(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Admission: unqueued, Children: children, Now: now})
	return then(p, job).GenericJob, children
}

// BenchmarkPlan plans a job in a steady state, with nothing to write.
func BenchmarkPlan(b *testing.B) {
	for _, replicas := range []int32{10, 1000} {
		b.Run(fmt.Sprintf("%d replicas", replicas), func(b *testing.B) {
			job, children := atRest(replicas)
			for b.Loop() {
				p := plan(jobs.Seen[*tensorstack.GenericJob]{Job: job, Admission: unqueued, Children: children, Now: now})
				if p.Status != nil || len(p.Writes) > 0 {
					b.Fatal("a job at rest is written")
				}
			}
		})
	}
}

// BenchmarkPodEvent measures the handling of a pod event before the reconcile, which runs ten times a second at most,
// however many events there are: it knows of no other pod.
func BenchmarkPodEvent(b *testing.B) {
	before, after := pod("job-worker-0").Running(), pod("job-worker-0").Running()
	for b.Loop() {
		if API.Watch.Matters(before.Pod, after.Pod) {
			b.Fatal("nothing has changed, and it matters")
		}
	}
}
