package latticejob

import (
	"testing"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// TestPodsReportTheProgressOfTheirLatticeJob: Volcano makes pods as the VCJob says. Pods that Muster makes itself get
// the variables when they are made.
func TestPodsReportTheProgressOfTheirLatticeJob(t *testing.T) {
	for _, external := range []bool{true, false} {
		s := newScene().with(func(s *scene) {
			s.seen.Facts.Agent = podspec.Agent{Server: "muster:9444", CA: "pem"}
			s.seen.Job.Annotations = map[string]string{"muster.dev/progress": "true"}
		})
		if external {
			s = s.external(jobs.Admission{Grant: jobs.Unqueued})
		}
		for _, w := range s.plan(t).Writes {
			vcjob, is := w.Object().(*volcano.Job)
			if !is {
				continue
			}
			if got := reportsTo(vcjob); (got != "") != external || external &&
				got != "https://muster:9444/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status" {
				t.Errorf("Volcano makes the pods: %t; they report to %q", external, got)
			}
		}
	}
}

// reportsTo returns where the first container of the pods reports its progress, "" if nowhere.
func reportsTo(vcjob *volcano.Job) string {
	for _, v := range vcjob.Spec.Tasks[0].Template.Spec.Containers[0].Env {
		if v.Name == "KUBEFLOW_TRAINER_SERVER_URL" {
			return v.Value
		}
	}
	return ""
}
