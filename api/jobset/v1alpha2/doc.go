// Package v1alpha2 has the Go types of the group jobset.x-k8s.io, version v1alpha2: the JobSet, a set of Jobs that
// start, restart and end together. Names, shapes and rules are those of the public API, so that manifests written for
// it work unmodified.
//
// Any package may import it. It has no logic and knows nothing of queues or of the engine. The CRD under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=jobset.x-k8s.io
package v1alpha2
