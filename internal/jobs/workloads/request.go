package workloads

import (
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// request is what labels and annotations, common to all job APIs, ask of the Workload.
type request struct {
	// maximumExecutionTimeSeconds is nil without a limit.
	maximumExecutionTimeSeconds *int32
	// gatedBy lists the controllers that hold back the admission.
	gatedBy string
}

// requestOf returns what the job's labels and annotations ask for. If a label is wrong, it returns a mistake, and no
// value is guessed in its place.
func requestOf(job client.Object, priorities jobs.PriorityFacts) (request, *write.Event) {
	r := request{gatedBy: job.GetAnnotations()[kueue.AdmissionGatedByAnnotation]}
	if class := job.GetLabels()[kueue.WorkloadPriorityClassLabel]; class != "" && priorities.Workload[class] == nil {
		return r, jobs.Mistake(fmt.Sprintf("The label %s names the WorkloadPriorityClass %s, which does not exist: create it, or name another",
			kueue.WorkloadPriorityClassLabel, class))
	}
	text, limited := job.GetLabels()[kueue.MaxExecTimeSecondsLabel]
	if !limited {
		return r, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 1 {
		return r, jobs.Mistake(fmt.Sprintf("The label %s is %q: it must be a number of seconds from 1 to 2147483647",
			kueue.MaxExecTimeSecondsLabel, text))
	}
	r.maximumExecutionTimeSeconds = ptr.To(int32(seconds))
	return r, nil
}
