package jobs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestWhatWasNotedOfAJobOutlivesAnUpgrade: jobs that run would be stopped by a Muster that takes the same needs for others. Whoever has
// to change the digest changes askedVersion with it.
func TestWhatWasNotedOfAJobOutlivesAnUpgrade(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	podSets := func(cpu string) []kueue.PodSet {
		one := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
		return []kueue.PodSet{{Name: "main", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"zone": "a"}, Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			InitContainers: []corev1.Container{{Name: "beside", Resources: one, RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "main", Image: "example.com/work:1", Resources: one}},
		}}}}
	}
	const noted = "v1-e64d8daea2332c844ab39be27b55f224"
	if got := askedFor(podSets("1")); got != noted {
		t.Errorf("noted as %s", got)
	}
	for note, want := range map[string]bool{noted: true, "": false, "v1-00": false, "v0-00": true} {
		granted := Admission{Grant: Admitted, Noted: note, PodSets: map[string]PodSetAdmission{"main": {Template: &corev1.PodTemplateSpec{}}}}
		if got := granted.IsFor(podSets("1")); got != want {
			t.Errorf("noted %q: the quota is for it: %v", note, got)
		}
	}
	if granted := (Admission{Grant: Admitted, Noted: noted, PodSets: map[string]PodSetAdmission{"main": {Template: &corev1.PodTemplateSpec{}}}}); granted.IsFor(podSets("2")) {
		t.Error("the quota is for twice as much")
	}
}
