// Package v1alpha1 holds the Go types of the group bus.volcano.sh, version v1alpha1: the Command, by which people have a
// Volcano Job stopped or started again, and the words for what happens to Jobs and what is done about it, which the types
// of the group batch.volcano.sh use. Names and shapes are those of the public API.
//
// Anyone may import it. It holds no logic and knows nothing of queues or of the engine. The custom resource definition
// under charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=bus.volcano.sh
package v1alpha1
