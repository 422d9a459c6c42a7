// Package v1beta1 has the Go types of the group batch.tensorstack.dev, version v1beta1: the GenericJob, with replicas
// of several types and rules that determine when the job has succeeded or failed. Names, shapes and rules are those of
// the public API, so that manifests written for it work unmodified.
//
// Any package may import it. It has no logic and knows nothing of queues or of the engine. The CRD under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=batch.tensorstack.dev
package v1beta1
