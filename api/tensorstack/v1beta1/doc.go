// Package v1beta1 holds the Go types of the group batch.tensorstack.dev, version v1beta1: the GenericJob, replicas of
// several types with rules that say when they have succeeded or failed together. Names, shapes and rules are those of
// the public API, so that manifests written for it work here as they are.
//
// Anyone may import it. It holds no logic and knows nothing of queues or of the engine. The custom resource definition
// under charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=batch.tensorstack.dev
package v1beta1
