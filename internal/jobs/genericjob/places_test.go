package genericjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/podspec"
)

func TestWhoIsMissingIsGivenThePlaceThatIsFree(t *testing.T) {
	at := func(node string, count int32) podspec.Place {
		return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
	}
	grant := jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{"worker": {Count: 4, Places: podspec.Places{at("a", 3), at("b", 1)}}}}
	on := func(index int, node string) jobstest.Pod {
		b := pod(fmt.Sprint("job-worker-", index)).Running()
		b.Spec.NodeName, b.Spec.NodeSelector = node, map[string]string{corev1.LabelHostname: node}
		return b
	}
	others := []jobstest.Pod{on(1, "a"), on(2, "a"), on(3, "a")}
	first := func(p jobs.Plan) string {
		for _, w := range p.Writes {
			if p, ok := w.Object().(*corev1.Pod); ok && w.Verb() == "create" && p.Name == "job-worker-0" {
				return fmt.Sprint(p.Spec.NodeSelector[corev1.LabelHostname], len(p.Spec.SchedulingGates))
			}
		}
		return "none"
	}
	job := newJob().with("worker", 4)
	same(t, "the others have the places of ranks 0 to 2", "b0", first(see(t, job.GenericJob, grant, of(others[0], others[1], others[2]))))
	same(t, "its own is free", "a0", first(see(t, job.GenericJob, grant, of(others[0], others[1]))))
	same(t, "one on its way out has a place as yet", "b0", first(see(t, job.GenericJob, grant, of(others[0], others[1], on(3, "a").Going()))))
	same(t, "another has none on its node any more", "a0", first(see(t, job.GenericJob, grant, of(others[0], others[1], on(3, "c")))))
}
