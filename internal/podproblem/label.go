package podproblem

import (
	batchv1 "k8s.io/api/batch/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// Label returns the key of the label whose value, on the pods of a job of this kind and group, is the job's name; ""
// for a kind that has none. Volcano's kind Job is also known as VCJob.
func Label(group, kind string) string {
	switch {
	case kind == "JobSet":
		return jobset.JobSetNameKey
	case kind == "GenericJob":
		return tensorstack.GenericJobLabel
	case kind == "VCJob", kind == "LatticeJob", kind == "Job" && group == volcano.GroupVersion.Group:
		return volcano.JobNameKey
	case kind == "TrainingJob":
		return breezeml.JobNameLabel
	case kind == "Job":
		return batchv1.JobNameLabel
	}
	return ""
}

// LabelsOf returns the labels that the controller of a job of this kind and group gives to all pods of a pod set:
// labels that name the job, and the part of the job where the kind has a label for the part.
func LabelsOf(group, kind, job, podSet string) map[string]string {
	key := Label(group, kind)
	if key == "" {
		return nil
	}
	out := map[string]string{key: job}
	switch key {
	case jobset.JobSetNameKey:
		out[jobset.ReplicatedJobNameKey] = podSet
	case volcano.JobNameKey:
		out[volcano.TaskSpecKey] = podSet
	case batchv1.JobNameLabel:
		out["job-name"] = job // as before Kubernetes 1.27
	}
	return out
}
