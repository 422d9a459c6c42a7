// Package v1alpha1 has the Go types of the group batch.volcano.sh, version v1alpha1: the Job, known as VCJob, with
// tasks that start together and policies that determine the actions on events of their pods. Names, shapes and rules
// are those of the public API, so that manifests written for it work unmodified.
//
// Any package may import it. It has no logic and knows nothing of queues or of the engine. The CRD under
// charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=batch.volcano.sh
package v1alpha1
