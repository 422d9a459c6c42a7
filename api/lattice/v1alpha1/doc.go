// Package v1alpha1 has the Go types of the group lattice.dev, version v1alpha1: the LatticeJob, with named tasks that
// are compiled to a batch.volcano.sh Job and the objects that its pods need. Names, shapes and rules are those of the
// public API, so that manifests written for it work unmodified.
//
// Any package may import it. It has no logic and knows nothing of queues or of the engine. The CRD under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=lattice.dev
package v1alpha1
