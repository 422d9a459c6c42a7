package latticejob

import (
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// Settings are the operator's settings for all LatticeJobs.
type Settings struct {
	// External says that Volcano runs VCJobs.
	External bool
	// GPUs says which resources GPUs are requested as; if empty, the nodes' resources decide.
	GPUs compile.GPUs
	// GPUModels maps names of GPU models, in upper case, to values of the product label.
	GPUModels map[string]string
	// NeedMesh and NeedTracing make jobs wait for mesh members and TracingPolicies if the cluster does
	// not serve these kinds.
	NeedMesh, NeedTracing bool
	// SpreadBy is the label over whose values pods are spread; the host name if empty.
	SpreadBy string
	// Cluster holds the values of ${cluster.*}.
	Cluster map[string]string
}

// controller plans LatticeJobs with the operator's settings.
type controller struct{ settings Settings }
