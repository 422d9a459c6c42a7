package trainingjob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// sizes are the fewest and the most workers that a job runs with.
type sizes struct{ least, most int32 }

// sizesOf returns the sizes of the job. A missing minSize is 1; a missing maxSize is minSize.
func sizesOf(job *breezeml.TrainingJob) sizes {
	least := ptr.Deref(job.Spec.MinSize, 1)
	return sizes{least: least, most: ptr.Deref(job.Spec.MaxSize, max(1, least))}
}

// mistakeOf says why the job cannot run as it is, and how to correct it; "" if it can.
func mistakeOf(job *breezeml.TrainingJob) string {
	size := sizesOf(job)
	switch {
	case size.least < 1:
		return fmt.Sprintf("minSize is %d: a job has at least 1 worker. Raise it", size.least)
	case size.most < size.least:
		return fmt.Sprintf("minSize, %d, is above maxSize, %d: lower the one or raise the other", size.least, size.most)
	case size.most > breezeml.MostWorkers:
		return fmt.Sprintf("a job has at most %d workers, not %d: lower maxSize, or minSize if there is none",
			breezeml.MostWorkers, size.most)
	}
	if c := trainingContainer(&job.Spec.ReplicaSpecs.Template.Spec); job.Spec.InjectLattice &&
		(c == nil || len(c.Command) == 0) {
		return "injectLattice needs an explicit command in the container " + breezeml.DefaultContainerName +
			", or in the first if none has that name"
	}
	return ""
}

// granted returns with how many workers the job may run, 0 if it may not run. A user who lowers maxSize below what was
// granted gets the lower number, and so does a job of which a larger size has failed. Once a worker has succeeded, the
// job is about to end and does not grow: new workers would repeat finished work.
func (v *view) granted() int32 {
	size := sizesOf(v.job)
	most := size.most
	if limit := limitOf(v.job); limit > 0 {
		most = min(most, max(limit, size.least))
	}
	if s := &v.job.Status; s.Stage == breezeml.StageRunning && v.succeeded() > 0 {
		most = min(most, s.CurrentSize)
	}
	switch v.seen.Admission.Grant {
	case jobs.Unqueued:
		return most
	case jobs.Admitted:
		return min(most, v.seen.Admission.PodSets[worker].Count)
	}
	return 0
}

// succeeded counts the pods that have succeeded.
func (v *view) succeeded() int32 {
	var n int32
	for _, pod := range v.pods {
		if pod.Status.Phase == corev1.PodSucceeded && !replicas.IsTerminating(pod) {
			n++
		}
	}
	return n
}

// reclaimable reports workers that have succeeded, which keeps the queue from growing the job. It reports no more than
// the pods that were not granted, so that no granted quota is given away: the pod of a succeeded worker may get lost,
// and is recreated then.
func (v *view) reclaimable() map[string]int32 {
	granted := v.seen.Admission.PodSets[worker]
	n := min(v.succeeded(), granted.Asked-granted.Count)
	if v.job.Status.Stage != breezeml.StageRunning || n <= 0 {
		return nil
	}
	return map[string]int32{worker: n}
}
