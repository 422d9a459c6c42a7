// Package v1 holds the Go types of the group breezeml.ai, version v1: the TrainingJob, workers of one kind whose number
// follows what the cluster can give, between two bounds. Names, shapes and rules are those of the public API, so that
// manifests written for it work here as they are. The group's name may be another one where the operator is told so.
//
// Anyone may import it. It holds no logic and knows nothing of queues or of the engine. The custom resource definition
// under charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=breezeml.ai
package v1
