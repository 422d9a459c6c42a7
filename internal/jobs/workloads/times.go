package workloads

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// What a job says of its time goes to its Workload in annotations, by which the queue plans. A limit that the job's own
// API enforces does not become the Workload's maximumExecutionTimeSeconds: the job would be stopped twice, the second
// time by its queue, which deactivates the Workload instead of failing the job.

// describeTimes sets the annotations of a new Workload that say how long its job takes, and when its own API stops it:
// after the limit of the job, or else that of all its pods, unless the job has the label for a limit.
func describeTimes(w *kueue.Workload, job client.Object, described jobs.Description) {
	limit := described.Limit
	if limit == 0 && job.GetLabels()[kueue.MaxExecTimeSecondsLabel] == "" {
		limit = workload.PodsDeadline(described.PodSets)
	}
	setTime(w, muster.JobLimitAnnotation, limit)
	expected := workload.ParseTime(job.GetAnnotations()[muster.ExpectedDurationAnnotation])
	if estimate := described.Estimate; estimate > 0 && estimate <= workload.LongestTime {
		expected = cmp.Or(expected, estimate)
	}
	setTime(w, muster.ExpectedDurationAnnotation, expected)
}

// setTime sets an annotation to a duration, or removes it if that is zero.
func setTime(w *kueue.Workload, annotation string, d time.Duration) {
	if d == 0 {
		delete(w.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, annotation, d.String())
}

// updateTimes copies from described, the Workload as its job describes it now, the annotations that say how long the
// job takes. They count at once, also for a running job: its own API does not wait for the queue either.
func updateTimes(w, described *kueue.Workload) {
	for _, annotation := range []string{muster.JobLimitAnnotation, muster.ExpectedDurationAnnotation} {
		setTime(w, annotation, workload.ParseTime(described.Annotations[annotation]))
	}
}
