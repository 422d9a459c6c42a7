package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRanksOf(t *testing.T) {
	for text, want := range map[string][2]int32{
		"4-7": {4, 8}, "0-0": {0, 1}, "7-4": {}, "-1-2": {}, "4": {}, "": {}, "a-b": {}, "0-2147483647": {}, "4294967296-4294967297": {},
	} {
		from, to, ok := RanksOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/ranks": text}}})
		if from != want[0] || to != want[1] || !ok {
			t.Errorf("RanksOf(%q) = %d, %d, %t", text, from, to, ok)
		}
	}
	if _, _, ok := RanksOf(&corev1.Pod{}); ok {
		t.Error("RanksOf a pod without the annotation returned true")
	}
}
