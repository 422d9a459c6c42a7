package vcjob

import (
	"testing"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

func TestPodsReportTheProgressOfTheirVCJob(t *testing.T) {
	job := newJob().with("worker", 1)
	for i := range job.Spec.Tasks {
		job.Spec.Tasks[i].Template.Annotations = map[string]string{"muster.dev/progress": "true"}
	}
	got := plan(jobs.Seen[*volcano.Job]{Job: job.Job, Admission: admitted("worker", 1), Now: now,
		Facts: jobs.Facts{Agent: podspec.Agent{Server: "muster:9444", CA: "pem"}}})
	want := "https://muster:9444/apis/trainer.kubeflow.org/v1alpha1/namespaces/" + job.Namespace + "/trainjobs/" +
		job.Name + "/status"
	if reports := variables(made(t, got, "job-worker-0"))["KUBEFLOW_TRAINER_SERVER_URL"]; reports != want {
		t.Errorf("its pod reports to %q, want %q", reports, want)
	}
}
