// Package v1beta1 has the Go types of the group scheduling.volcano.sh, version v1beta1: the Queue. Names and shapes are
// those of the public API. The group's PodGroup is not included: other programs detect Volcano's scheduler by that
// kind, so Muster never serves it.
//
// Any package may import it. It has no logic and knows nothing of the engine. The CRD under charts/muster/apis is
// generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.volcano.sh
package v1beta1
