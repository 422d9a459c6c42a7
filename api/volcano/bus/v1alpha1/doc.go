// Package v1alpha1 has the Go types of the group bus.volcano.sh, version v1alpha1: the Command, by which users stop and
// resume a Volcano Job, and the events and actions that the types of the group batch.volcano.sh use. Names and shapes
// are those of the public API.
//
// Any package may import it. It has no logic and knows nothing of queues or of the engine. The CRD under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=bus.volcano.sh
package v1alpha1
