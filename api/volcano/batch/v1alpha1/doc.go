// Package v1alpha1 holds the Go types of the group batch.volcano.sh, version v1alpha1: the Job, known as VCJob, which is
// tasks that start together, and policies that say what is done when something happens to their pods. Names, shapes and
// rules are those of the public API, so that manifests written for it work here as they are.
//
// Anyone may import it. It holds no logic and knows nothing of queues or of the engine. The custom resource definition
// under charts/muster/apis is generated from the markers in these files.
//
// +kubebuilder:object:generate=true
// +groupName=batch.volcano.sh
package v1alpha1
