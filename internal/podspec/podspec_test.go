package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func container(requests, limits string) corev1.Container {
	var c corev1.Container
	if requests != "" {
		c.Resources.Requests = list(requests)
	}
	if limits != "" {
		c.Resources.Limits = list(limits)
	}
	return c
}

func TestRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("1", "")
	sidecar.RestartPolicy = &always
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"several containers": {corev1.PodSpec{Containers: []corev1.Container{container("1", ""),
			container("2", "3")}}, "3"},
		"a limit without a request": {corev1.PodSpec{Containers: []corev1.Container{container("", "2")}}, "2"},
		"an init container with the peak": {corev1.PodSpec{InitContainers: []corev1.Container{container("5", "")},
			Containers: []corev1.Container{container("1", "")}}, "5"},
		"a sidecar": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar},
			Containers: []corev1.Container{container("1", "")}}, "2"},
		"overhead": {corev1.PodSpec{Containers: []corev1.Container{container("1", "")},
			Overhead: list("1")}, "2"},
		"resources of the pod": {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list("7")},
			Containers: []corev1.Container{container("1", "")}}, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Requests(tc.spec)[corev1.ResourceCPU]
			if want := resource.MustParse(tc.want); got.Cmp(want) != 0 {
				t.Errorf("cpu %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func TestInjectCopiesAndOverridesTheTemplate(t *testing.T) {
	toleration := corev1.Toleration{Key: "simulated", Operator: corev1.TolerationOpExists}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		NodeSelector:    map[string]string{"zone": "a", "disk": "ssd"},
		Tolerations:     []corev1.Toleration{toleration},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "own"}, {Name: "topology"}},
	}}
	before := template.DeepCopy()
	got := Injection{NodeSelector: map[string]string{"zone": "b"}, Tolerations: []corev1.Toleration{toleration},
		Gates: []string{"topology", "another"}}.Inject(template)
	if diff := cmp.Diff(map[string]string{"zone": "b", "disk": "ssd"}, got.Spec.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	if len(got.Spec.Tolerations) != 1 || len(got.Spec.SchedulingGates) != 3 { // a gate that is there twice is refused
		t.Errorf("tolerations = %v, gates = %v, want one, and three", got.Spec.Tolerations, got.Spec.SchedulingGates)
	}
	if diff := cmp.Diff(*before, template); diff != "" {
		t.Errorf("Inject changed the given template:\n%s", diff)
	}
}
