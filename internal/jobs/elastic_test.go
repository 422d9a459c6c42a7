package jobs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestSizeIsAtMostWhatWasGranted, even if the minimum was raised after the admission.
func TestSizeIsAtMostWhatWasGranted(t *testing.T) {
	for _, tc := range []struct{ least, most, granted, want int32 }{{1, 8, 2, 2}, {4, 8, 2, 2},
		{1, 8, 9, 8}, {8, 8, 8, 8}} {
		if got := (Bounds{Least: tc.least, Most: tc.most, Elastic: true}).Size(tc.granted); got != tc.want {
			t.Errorf("bounds %d to %d, %d granted: Size = %d, want %d", tc.least, tc.most, tc.granted, got, tc.want)
		}
	}
}

// TestNumbersThatTheAPIRejectsCountAsAbsent: a job may have been stored before the API rejected them.
func TestNumbersThatTheAPIRejectsCountAsAbsent(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "many": 0, "-1": 0, "0": 0, "1": 1, "9999": 9999, "10000": 10000,
		"10001": 0, "2147483647": 0, "4294967297": 0} {
		n, ok := ReplicasIn(map[string]string{muster.MaxReplicasAnnotation: text}, muster.MaxReplicasAnnotation)
		if ok != (want > 0) || ok && n != want {
			t.Errorf("%q counts as %d, %v; want %d", text, n, ok, want)
		}
	}
}

// TestAnAnnotationIsDroppedFromThePodSetAlone: the template of a pod set may share its map with the job.
func TestAnAnnotationIsDroppedFromThePodSetAlone(t *testing.T) {
	for _, key := range []string{muster.MinReplicasAnnotation, muster.MinPodsAnnotation} {
		annotations := map[string]string{key: "1", "mine": "2"}
		podSets := []kueue.PodSet{{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}},
			{}}
		for i := range podSets {
			DropAnnotation(&podSets[i], key)
		}
		if got := podSets[0].Template.Annotations; len(got) != 1 || got["mine"] != "2" {
			t.Errorf("annotations of the pod set = %v, want only mine=2", got)
		}
		if len(annotations) != 2 {
			t.Errorf("the job's annotations are %v, want them unchanged", annotations)
		}
	}
}
