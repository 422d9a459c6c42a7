package harness

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

// ResizeAtOnce is a configuration without delays before resizes, for tests of what follows a resize.
const ResizeAtOnce = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
elasticity: {growAfter: 0s, resizeCost: 0s}
`

// TrainingJob returns a TrainingJob with the agent, whose workers request 100m CPU, run the script, and find the folder
// of the test in $FOLDER.
func (w *World) TrainingJob(name string, minSize, maxSize int32, folder, script string) *breezeml.TrainingJob {
	return &breezeml.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: breezeml.TrainingJobSpec{
			MinSize: ptr.To(minSize), MaxSize: ptr.To(maxSize), InjectLattice: true,
			ReplicaSpecs: breezeml.ReplicaSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](10),
				Containers: []corev1.Container{{
					Name: "trainingjob", Image: "example.com/trainer", Command: []string{"bash", "-c", script},
					Env: []corev1.EnvVar{{Name: "FOLDER", Value: folder}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
				}},
			}}},
		},
	}
}
