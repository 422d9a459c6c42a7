package podproblem

import (
	"maps"
	"testing"
)

func TestLabelsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		group, kind string
		want        map[string]string
	}{
		"a JobSet": {"jobset.x-k8s.io", "JobSet",
			map[string]string{"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "workers"}},
		"a VCJob": {"batch.volcano.sh", "Job",
			map[string]string{"volcano.sh/job-name": "train", "volcano.sh/task-spec": "workers"}},
		"a LatticeJob": {"lattice.dev", "LatticeJob",
			map[string]string{"volcano.sh/job-name": "train", "volcano.sh/task-spec": "workers"}},
		"a batch Job":   {"batch", "Job", map[string]string{"batch.kubernetes.io/job-name": "train", "job-name": "train"}},
		"a GenericJob":  {"tensorstack.dev", "GenericJob", map[string]string{"genericjob": "train"}},
		"a TrainingJob": {"example.com", "TrainingJob", map[string]string{"training.kubeflow.org/job-name": "train"}},
		"another kind":  {"example.com", "Train", nil},
	} {
		if got := LabelsOf(tc.group, tc.kind, "train", "workers"); !maps.Equal(got, tc.want) {
			t.Errorf("%s: labels %v, want %v", name, got, tc.want)
		}
	}
}
