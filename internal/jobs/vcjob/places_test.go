package vcjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

func TestAMissingPodGetsTheFreePlace(t *testing.T) {
	job := newJob().with("worker", 4)
	jobstest.CheckMissingGetsFreePlace(t,
		func(index int) *corev1.Pod { return pod(fmt.Sprint("job-worker-", index)).running().Pod },
		func(grant jobs.Admission, others ...client.Object) jobs.Plan { return see(t, job.Job, grant, others) })
}
