package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

func TestExplainReportsThatAJobWaitsForNewNodes(t *testing.T) {
	topology := kueue.TopologyReference("default")
	onNode := func(name string) corev1.Pod { return corev1.Pod{Spec: corev1.PodSpec{NodeName: name}} }
	for name, tc := range map[string]struct {
		change func(*Snapshot, *kueue.Workload, *Job)
		want   bool
	}{
		"a job without places, with nodes on demand": {func(*Snapshot, *kueue.Workload, *Job) {}, true},
		"a job whose pods exist": {func(_ *Snapshot, _ *kueue.Workload, j *Job) {
			j.PodsReady = j.PodsAsked
		}, false},
		"a job one of whose pods has no node": {func(s *Snapshot, _ *kueue.Workload, _ *Job) {
			s.Pods = []corev1.Pod{onNode("n"), onNode("")}
		}, true},
		"a job whose pods start on new nodes": {func(s *Snapshot, _ *kueue.Workload, _ *Job) {
			s.Pods = []corev1.Pod{onNode("n"), onNode("m")}
		}, false},
		"a job with places": {func(_ *Snapshot, w *kueue.Workload, _ *Job) {
			w.Status.Admission.PodSetAssignments[0].TopologyAssignment = &kueue.TopologyAssignment{}
		}, false},
		"a flavor without a topology": {func(s *Snapshot, _ *kueue.Workload, _ *Job) {
			s.ResourceFlavors[0].Spec.TopologyName = nil
		}, false},
		"a queue without nodes on demand": {func(s *Snapshot, _ *kueue.Workload, _ *Job) {
			s.ClusterQueues[0].Annotations = nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, now := busyLab(), at(60).Time
			jobs := Jobs(&snapshot, now)
			job := Find(jobs, Name{Name: "train"})[0]
			job.PodsReady = 0
			workload := findWorkload(&snapshot, &job)
			snapshot.ClusterQueues = []kueue.ClusterQueue{
				{ObjectMeta: metav1.ObjectMeta{Name: string(workload.Status.Admission.ClusterQueue),
					Annotations: map[string]string{"muster.dev/nodes-on-demand": "true"}}}}
			snapshot.ResourceFlavors = []kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "h100"},
				Spec: kueue.ResourceFlavorSpec{TopologyName: &topology}}}
			tc.change(&snapshot, workload, &job)
			if got := Explain(&snapshot, jobs, job, now).NewNodes; got != tc.want {
				t.Errorf("NewNodes = %v, want %v", got, tc.want)
			}
		})
	}
}
