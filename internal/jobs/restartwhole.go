package jobs

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
)

// Some jobs are of no use in part: the ranks of an MPI job wait for each other, and ranks that are done do not answer.
// With the annotation RestartWholeAnnotation, a job runs all of its pods again if it was partly done when it lost its
// quota. That is done before the quota is returned, so that the job queues for all of its pods; and again before the
// job starts, if the annotation came later.

// RestartsWhole reports whether the job asks to run all of its pods again.
func RestartsWhole(job client.Object) bool {
	return job.GetAnnotations()[muster.RestartWholeAnnotation] == "true"
}

// The reasons of the events about it.
const (
	// RestartsWholeReason is that of a job that runs all of its pods again, RestartWholeRefusedReason that of one that
	// goes on with the rest, because the API server refuses what that takes.
	RestartsWholeReason       = "RestartsWhole"
	RestartWholeRefusedReason = "RestartWholeRefused"
)
