// Package v1beta1 has the Go types of the group kueue.x-k8s.io, version v1beta1: workloads, the queues in which they
// wait, and the quota for which they wait. Names, shapes and rules are those of the public API, so that manifests
// written for it work unmodified.
//
// Any package may import it. It has no logic and knows nothing of the engine or of the job APIs. The CRDs under
// charts/muster/apis are generated from the markers in these files.
//
// Three rules are more permissive than in the public API: a Workload may have up to 64 pod sets; several of them may
// set minCount; and while a Workload is admitted, the operator may resize it within minCount and count.
//
// +kubebuilder:object:generate=true
// +groupName=kueue.x-k8s.io
package v1beta1
