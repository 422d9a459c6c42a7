package genericjob

import (
	"testing"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

func TestPodsReportTheProgressOfTheirGenericJob(t *testing.T) {
	job := newJob().with("worker", 1)
	for i := range job.Spec.ReplicaSpecs {
		job.Spec.ReplicaSpecs[i].Template.Annotations = map[string]string{"muster.dev/progress": "true"}
	}
	pod := made(t, job, jobs.Facts{Agent: podspec.Agent{Server: "muster:9444", CA: "pem"}}, unqueued)
	want := "https://muster:9444/apis/trainer.kubeflow.org/v1alpha1/namespaces/" + job.Namespace + "/trainjobs/" +
		job.Name + "/status"
	if env := pod.Spec.Containers[0].Env; len(env) == 0 || env[0].Value != want {
		t.Errorf("its pod has the variables %+v, want one that is %s", env, want)
	}
}
