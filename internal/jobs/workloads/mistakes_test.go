package workloads

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// TestInvalidSpeedExponentIsAMistake: an invalid exponent is reported, not replaced by the default.
func TestInvalidSpeedExponentIsAMistake(t *testing.T) {
	mistakes := func(annotations map[string]string) []write.Event {
		podSets := []kueue.PodSet{{Name: "workers",
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}}
		return mistakesOf(&batchv1.Job{}, jobs.Description{PodSets: podSets}, jobs.PriorityFacts{}, false)
	}
	reported := mistakes(map[string]string{muster.MinReplicasAnnotation: "2", muster.SpeedExponentAnnotation: "fast"})
	if len(reported) != 1 || reported[0].Reason != jobs.InvalidJob || !strings.Contains(reported[0].Message, "workers") ||
		!strings.Contains(reported[0].Message, `"fast"`) {
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
