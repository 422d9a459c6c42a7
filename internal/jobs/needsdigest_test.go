package jobs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestNeedsDigestIsStableAcrossVersions checks the digest of a fixed pod set: a version of Muster that computed another
// one would stop running jobs. Whoever changes the digest must change needsDigestVersion too.
func TestNeedsDigestIsStableAcrossVersions(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	podSets := func(cpu string) []kueue.PodSet {
		one := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
		return []kueue.PodSet{{Name: "main", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"zone": "a"}, Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			InitContainers: []corev1.Container{{Name: "beside", Resources: one, RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "main", Image: "example.com/work:1", Resources: one}},
		}}}}
	}
	const want = "v1-e64d8daea2332c844ab39be27b55f224"
	if got := needsDigest(podSets("1")); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	for digest, isFor := range map[string]bool{want: true, "": false, "v1-00": false, "v0-00": true} {
		granted := Admission{Grant: Admitted, NeedsDigest: digest, PodSets: map[string]PodSetAdmission{"main": {Template: &corev1.PodTemplateSpec{}}}}
		if got := granted.IsFor(podSets("1")); got != isFor {
			t.Errorf("with the digest %q recorded IsFor = %v, want %v", digest, got, isFor)
		}
	}
	if granted := (Admission{Grant: Admitted, NeedsDigest: want, PodSets: map[string]PodSetAdmission{"main": {Template: &corev1.PodTemplateSpec{}}}}); granted.IsFor(podSets("2")) {
		t.Error("IsFor is true for pods that request twice as much as the digest's")
	}
}

// TestDigestOfAnotherVersionIsReplaced, whether or not the Workload holds quota. A digest of the current version is
// kept while the pod sets stay the same.
func TestDigestOfAnotherVersionIsReplaced(t *testing.T) {
	const now = "v1-aa"
	for recorded, want := range map[string]string{"v0-00": now, "forged": now, "": "", "v1-00": "v1-00"} {
		for name, w := range map[string]workloadBuilder{"waiting": waiting(), "admitted": waiting().admitted()} {
			seen := w.w
			if recorded != "" {
				metav1.SetMetaDataAnnotation(&seen.ObjectMeta, muster.AskedAnnotation, recorded)
			}
			described := seen.DeepCopy()
			metav1.SetMetaDataAnnotation(&described.ObjectMeta, muster.AskedAnnotation, now)
			got := seen
			if changed := respecified(seen, described, Progress{}); changed != nil {
				got = changed
			}
			if got := got.Annotations[muster.AskedAnnotation]; got != want {
				t.Errorf("%s Workload with the digest %q: the digest is then %q, want %q", name, recorded, got, want)
			}
		}
	}
}
