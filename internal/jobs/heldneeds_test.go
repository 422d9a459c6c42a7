package jobs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestNeedsDigestIsStableAcrossVersions checks the digest of a fixed pod set: a version of Muster that computed another
// one would stop running jobs. Whoever changes the digest must change needsDigestVersion too.
func TestNeedsDigestIsStableAcrossVersions(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	podSets := func(cpu string) []kueue.PodSet {
		one := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
		return []kueue.PodSet{{Name: "main", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector:   map[string]string{"zone": "a"},
			Tolerations:    []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			InitContainers: []corev1.Container{{Name: "beside", Resources: one, RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "main", Image: "example.com/work:1", Resources: one}},
		}}}}
	}
	const want = "v1-e64d8daea2332c844ab39be27b55f224"
	if got := NeedsDigest(podSets("1")); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	for digest, isFor := range map[string]bool{want: true, "": false, "v1-00": false, "v0-00": true} {
		granted := Admission{Grant: Admitted, NeedsDigest: digest,
			PodSets: map[string]PodSetAdmission{"main": {Template: &corev1.PodTemplateSpec{}}}}
		if got := granted.IsFor(podSets("1")); got != isFor {
			t.Errorf("with the digest %q recorded IsFor = %v, want %v", digest, got, isFor)
		}
	}
	if granted := (Admission{Grant: Admitted, NeedsDigest: want,
		PodSets: map[string]PodSetAdmission{"main": {Template: &corev1.PodTemplateSpec{}}}}); granted.IsFor(podSets("2")) {
		t.Error("IsFor is true for pods that request twice as much as the digest's")
	}
}
