//go:build bench

package endtoend

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podsLike plays a small load through the queue, and returns loads of any number of copies of its pods: what the floor
// creates is the same as what the load has, without the decisions. The operator must run.
func (b *bench) podsLike(what string, pods int,
	load func(namespace string) []client.Object) func(n int) func(namespace string) []client.Object {
	b.Helper()
	var sample []corev1.Pod
	b.whenBound = func(namespace string) {
		var list corev1.PodList
		if err := b.client.List(b.Context(), &list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		sample = list.Items
	}
	b.play(what, pods, load)
	b.whenBound = nil
	return func(n int) func(string) []client.Object {
		return func(namespace string) []client.Object {
			var out []client.Object
			for i := range n {
				pod := undecided(&sample[i%len(sample)])
				pod.Namespace, pod.Name = namespace, fmt.Sprintf("pod-%d", i)
				out = append(out, pod)
			}
			return out
		}
	}
}

// undecided returns the pod as its creator would send it if it decided nothing: with the metadata and the containers
// that it has, but free to go to any simulated node, and alone. It has no owner and no finalizers, because the floor
// has nobody who would remove them.
func undecided(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations},
		Spec: *pod.Spec.DeepCopy()}
	spec, free := &out.Spec, template(true).Spec
	spec.NodeName, spec.Affinity, spec.SchedulingGates, spec.SchedulingGroup = "", nil, nil, nil
	spec.NodeSelector, spec.Tolerations = free.NodeSelector, free.Tolerations
	// The API server adds the token again.
	isToken := func(name string) bool { return strings.HasPrefix(name, "kube-api-access-") }
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return isToken(v.Name) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts,
				func(m corev1.VolumeMount) bool { return isToken(m.Name) })
		}
	}
	return out
}
