package trainingjob

import (
	"fmt"

	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
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
		return fmt.Sprintf("a job has at most %d workers, not %d: lower maxSize, or minSize if there is none", breezeml.MostWorkers, size.most)
	}
	if c := trainingContainer(&job.Spec.ReplicaSpecs.Template.Spec); job.Spec.InjectLattice && (c == nil || len(c.Command) == 0) {
		return "injectLattice needs an explicit command in the container " + breezeml.DefaultContainerName + ", or in the first if none has that name"
	}
	return ""
}
