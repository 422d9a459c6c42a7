// Package v1alpha1 holds the Go types of the group lattice.dev, version v1alpha1: the LatticeJob, named tasks that are
// compiled to a batch.volcano.sh Job and to all that its pods need. Names, shapes and rules are those of the public API,
// so that manifests written for it work here as they are.
//
// Anyone may import it. It holds no logic and knows nothing of queues or of the engine. The custom resource definition
// under charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=lattice.dev
package v1alpha1
