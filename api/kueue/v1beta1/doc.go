// Package v1beta1 holds the Go types of the group kueue.x-k8s.io, version v1beta1: workloads, the queues that they
// wait in and the quota that they wait for. Names, shapes and rules are those of the public API, so that manifests
// written for it work here as they are.
//
// Anyone may import it. It holds no logic and knows nothing of the engine or of the job APIs. The custom resource
// definitions under charts/muster/apis are generated from the markers in these files.
//
// Three rules are wider here than in the public API: a Workload takes up to 64 pod sets; several of them may set
// minCount; and while a Workload is admitted the operator may resize it, within minCount and count.
//
// +kubebuilder:object:generate=true
// +groupName=kueue.x-k8s.io
package v1beta1
