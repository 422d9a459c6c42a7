// Package v1 has the Go types of the group breezeml.ai, version v1: the TrainingJob, with workers of one kind whose
// number adapts to what the cluster can give, within a range. Names, shapes and rules are those of the public API, so
// that manifests written for it work unmodified. The operator can be configured to use another group name.
//
// Any package may import it. It has no logic and knows nothing of queues or of the engine. The CRD under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=breezeml.ai
package v1
