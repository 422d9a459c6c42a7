// Package v1beta1 holds the Go types of the group scheduling.volcano.sh, version v1beta1: the Queue. Names and shapes are
// those of the public API. The group's PodGroup is not among them: who asks whether Volcano's scheduler is there looks
// for that kind, which Muster never serves.
//
// Anyone may import it. It holds no logic and knows nothing of the engine. The custom resource definition under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.volcano.sh
package v1beta1
