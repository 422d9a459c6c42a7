package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRanksOf(t *testing.T) {
	for text, want := range map[string][2]int32{
		"4-7": {4, 8}, "0-0": {0, 1}, "7-4": {}, "-1-2": {}, "4": {}, "": {}, "a-b": {}, "0-2147483647": {},
		"4294967296-4294967297": {},
	} {
		from, to, ok :=
			RanksOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/ranks": text}}})
		if from != want[0] || to != want[1] || !ok {
			t.Errorf("RanksOf(%q) = %d, %d, %t", text, from, to, ok)
		}
	}
	if _, _, ok := RanksOf(&corev1.Pod{}); ok {
		t.Error("RanksOf a pod without the annotation returned true")
	}
}

func TestIndexOf(t *testing.T) {
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                int32
		has                 bool
	}{
		"pod of an Indexed Job":           {map[string]string{"batch.kubernetes.io/job-completion-index": "3"}, nil, 3, true},
		"annotation of an Indexed Job":    {nil, map[string]string{"batch.kubernetes.io/job-completion-index": "3"}, 3, true},
		"pod of a VCJob":                  {map[string]string{"volcano.sh/task-index": "3"}, nil, 3, true},
		"pod of a TrainingJob":            {map[string]string{"training.kubeflow.org/replica-index": "3"}, nil, 3, true},
		"pod of a GenericJob":             {map[string]string{"genericjob-replica": "job-7-type-3"}, nil, 3, true},
		"pod without an index":            {map[string]string{"app": "3"}, nil, 0, false},
		"a label that holds no number":    {map[string]string{"volcano.sh/task-index": "-3"}, nil, 0, false},
		"a replica's name without number": {map[string]string{"genericjob-replica": "job-type-x"}, nil, 0, false},
	} {
		got, has := IndexOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}})
		if has != tc.has || has && got != tc.want {
			t.Errorf("%s: index %d, %t, want %d, %t", name, got, has, tc.want, tc.has)
		}
	}
}
