package latticejob

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/workload"
)

// An object that is too large to be stored stays so until the spec changes, so the job fails, as one that cannot be
// compiled. That is known from the API server alone, whose limit the cluster sets. The job has objects in the service
// graph by then, which have to be removed first: the status of the refused write says what the next plan has to do.

// tooLarge returns that status.
func (v *view) tooLarge(err error) lattice.LatticeJobStatus {
	why := fmt.Sprintf("one of its objects is too large to be stored (%v): give it fewer tasks, or move what is long in them into files", err)
	return lattice.LatticeJobStatus{Phase: lattice.Pending,
		Message:            workload.Cut(fmt.Sprintf(lattice.CompileFailedMessage, why), messageBytes),
		ObservedGeneration: ptr.To(v.job.Generation)}
}

// wasTooLarge reports whether the status says that an object of the spec, as it is now, was too large.
func (v *view) wasTooLarge() bool {
	status := &v.job.Status
	return status.Phase == lattice.Pending && ptr.Deref(status.ObservedGeneration, 0) == v.job.Generation &&
		strings.HasPrefix(status.Message, fmt.Sprintf(lattice.CompileFailedMessage, ""))
}
