package vcjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/podspec"
)

// TestTimeOfPlans: no pod is compared with each action, nor each task, nor each pod that its task depends on, with
// every pod of the job.
func TestTimeOfPlans(t *testing.T) {
	for name, build := range map[string]func(size int) (jobBuilder, []any){
		"pods that restart together": func(size int) (jobBuilder, []any) {
			var pods []any
			for i := range size {
				pods = append(pods, pod(fmt.Sprintf("job-w-%d", i)).ended(1))
			}
			return newJob().with("w", int32(size)).on(bus.PodFailedEvent, bus.RestartPodAction), pods
		},
		"tasks of one pod": func(size int) (jobBuilder, []any) {
			var pods []any
			job := newJob()
			for i := range size {
				job = job.with(fmt.Sprintf("w%d", i), 1)
				pods = append(pods, pod(fmt.Sprintf("job-w%d-0", i)).running())
			}
			return job, pods
		},
		"pods that wait for others": func(size int) (jobBuilder, []any) {
			return newJob().with("p", int32(size)).with("w", int32(size), dependsOn(volcano.IterationAll, "p")),
				[]any{pod("job-p-0").ended(0)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			jobstest.CheckAboutLinear(t, 2000, func(size int) func() {
				job, pods := build(size)
				seen := jobs.Seen[*volcano.Job]{Job: job.is(volcano.Running).Job, Admission: jobs.Admission{Grant: jobs.Unqueued},
					Children: of(pods...), Now: now}
				return func() { plan(seen) }
			})
		})
	}
}

// TestTimeOfDisplacedPods: half of the pods are missing, and others of their slice have their places, as after repairs.
// Not every missing pod looks again at the places that were given to those before it.
func TestTimeOfDisplacedPods(t *testing.T) {
	jobstest.CheckAboutLinear(t, 2500, func(size int) func() {
		on := func(i int) podspec.Place {
			return podspec.Place{Domain: map[string]string{corev1.LabelHostname: fmt.Sprint("node-", i)}, Count: 1}
		}
		granted := jobs.PodSetAdmission{Count: int32(size), Asked: int32(size), Left: int32(size), SliceSize: int32(size)}
		var pods []any
		for i := range size {
			granted.Places = append(granted.Places, on(i))
		}
		for i := range size / 2 {
			p := pod(fmt.Sprintf("job-w-%d", i)).running()
			p.Spec.NodeName, p.Spec.NodeSelector = fmt.Sprint("node-", size/2+i), on(size/2+i).Domain
			pods = append(pods, p)
		}
		grant := jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{"w": granted}}
		seen := jobs.Seen[*volcano.Job]{Job: newJob().with("w", int32(size)).is(volcano.Running).Job, Admission: grant,
			Children: of(pods...), Now: now}
		return func() { plan(seen) }
	})
}
