package jobs

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestInvalidSpeedExponentIsAMistake: an invalid exponent is reported, not replaced by the default.
func TestInvalidSpeedExponentIsAMistake(t *testing.T) {
	mistakes := func(annotations map[string]string) []Event {
		podSets := []kueue.PodSet{{Name: "workers", Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}}
		return mistakesOf(&batchv1.Job{}, Description{PodSets: podSets}, PriorityFacts{}, false)
	}
	reported := mistakes(map[string]string{muster.MinReplicasAnnotation: "2", muster.SpeedExponentAnnotation: "fast"})
	if len(reported) != 1 || reported[0].Reason != InvalidJob || !strings.Contains(reported[0].Message, "workers") || !strings.Contains(reported[0].Message, `"fast"`) {
		t.Errorf("mistakes = %+v, want one that names the pod set and the value", reported)
	}
	for name, annotations := range map[string]map[string]string{
		"a valid exponent": {muster.MinReplicasAnnotation: "2", muster.SpeedExponentAnnotation: "0.6"},
		"no exponent":      {muster.MinReplicasAnnotation: "2"},
		"not elastic":      {muster.SpeedExponentAnnotation: "fast"},
	} {
		if reported := mistakes(annotations); len(reported) > 0 {
			t.Errorf("%s: mistakes = %+v, want none", name, reported)
		}
	}
}

// TestSizeIsAtMostWhatWasGranted, even if the minimum was raised after the admission.
func TestSizeIsAtMostWhatWasGranted(t *testing.T) {
	for _, tc := range []struct{ least, most, granted, want int32 }{{1, 8, 2, 2}, {4, 8, 2, 2}, {1, 8, 9, 8}, {8, 8, 8, 8}} {
		if got := (Bounds{Least: tc.least, Most: tc.most, Elastic: true}).Size(tc.granted); got != tc.want {
			t.Errorf("bounds %d to %d, %d granted: Size = %d, want %d", tc.least, tc.most, tc.granted, got, tc.want)
		}
	}
}

// TestNumbersThatTheAPIRejectsCountAsAbsent: a job may have been stored before the API rejected them.
func TestNumbersThatTheAPIRejectsCountAsAbsent(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "many": 0, "-1": 0, "0": 0, "1": 1, "9999": 9999, "10000": 10000, "10001": 0, "2147483647": 0, "4294967297": 0} {
		n, ok := ReplicasIn(map[string]string{muster.MaxReplicasAnnotation: text}, muster.MaxReplicasAnnotation)
		if ok != (want > 0) || ok && n != want {
			t.Errorf("%q counts as %d, %v; want %d", text, n, ok, want)
		}
	}
}
