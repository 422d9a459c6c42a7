package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/podspec"
)

// twoCPUs is what each pod of the jobs in this file requests.
var twoCPUs = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}

// fullTemplate returns a pod template with labels, a service account, a container and its requests.
func fullTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: "trainer",
			Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/train:1", Command: []string{"train"},
				Resources: corev1.ResourceRequirements{Requests: twoCPUs}}}}}
}

// minimalWorkload returns the prebuilt Workload of the pod sets, whose templates hold nothing but the requests of
// fullTemplate.
func minimalWorkload(podSets ...kueue.PodSet) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"},
		Spec: kueue.WorkloadSpec{QueueName: "cq", PodSets: podSets}}
	for i := range w.Spec.PodSets {
		w.Spec.PodSets[i].Template.Spec.Containers = []corev1.Container{{Name: "any",
			Resources: corev1.ResourceRequirements{Requests: twoCPUs}}}
	}
	return w
}

// TestPodsOfAJobWithAMinimalPrebuiltWorkload checks that the pods have the job's own template: a prebuilt Workload
// needs to state only what requires quota.
func TestPodsOfAJobWithAMinimalPrebuiltWorkload(t *testing.T) {
	prebuilt := map[string]string{kueue.PrebuiltWorkloadLabel: "prebuilt"}
	training := newTrainingJob()
	training.Labels, training.Spec.ReplicaSpecs.Template = prebuilt, fullTemplate()
	generic := newGenericJob("cq")
	generic.Labels = prebuilt
	for i := range generic.Spec.ReplicaSpecs {
		generic.Spec.ReplicaSpecs[i].Template = fullTemplate()
	}
	for name, w := range map[string]*podWorld{
		"TrainingJob": newPodWorld(t, fault{}, of(trainingjob.API(trainingSettings)), training, clusterQueue("cq"), flavor(),
			minimalWorkload(kueue.PodSet{Name: "worker", Count: 3, MinCount: ptr.To[int32](2)})),
		"GenericJob": newPodWorld(t, fault{}, of(genericjob.API), generic, clusterQueue("cq"), flavor(),
			minimalWorkload(kueue.PodSet{Name: "master", Count: 1}, kueue.PodSet{Name: "worker", Count: 2})),
	} {
		t.Run(name, func(t *testing.T) {
			w.mayEnd = func(*corev1.Pod) bool { return false }
			w.settle()
			checkPodsOfOwnTemplate(t, w)
		})
	}
}

// TestJobWithAMinimalPrebuiltWorkloadThatAsksForMore checks a job whose template is changed to larger pods: its pods
// have the containers, requests and node selector that there is quota for.
func TestJobWithAMinimalPrebuiltWorkloadThatAsksForMore(t *testing.T) {
	job := newGenericJob("cq")
	job.Labels = map[string]string{kueue.PrebuiltWorkloadLabel: "prebuilt"}
	for i := range job.Spec.ReplicaSpecs {
		job.Spec.ReplicaSpecs[i].Template = fullTemplate()
	}
	w := newPodWorld(t, fault{}, of(genericjob.API), job, clusterQueue("cq"), flavor(),
		minimalWorkload(kueue.PodSet{Name: "master", Count: 1}, kueue.PodSet{Name: "worker", Count: 2}))
	w.mayEnd = func(*corev1.Pod) bool { return false }
	w.settle()
	changed := &list[tensorstack.GenericJobList](w.world).Items[0]
	for i := range changed.Spec.ReplicaSpecs {
		spec := &changed.Spec.ReplicaSpecs[i].Template.Spec
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
		spec.Containers = append(spec.Containers, corev1.Container{Name: "more", Resources: spec.Containers[0].Resources})
		spec.NodeSelector = map[string]string{"pool": "another"}
	}
	if err := w.api.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	for _, pod := range list[corev1.PodList](w.world).Items {
		if err := w.api.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	checkPodsOfOwnTemplate(t, w)
}

// checkPodsOfOwnTemplate checks that there are three pods of fullTemplate, which request two CPUs each and select the
// nodes of the flavor.
func checkPodsOfOwnTemplate(t *testing.T, w *podWorld) {
	t.Helper()
	pods := list[corev1.PodList](w.world).Items
	if len(pods) != 3 {
		t.Fatalf("there are %d pods, want 3", len(pods))
	}
	for _, pod := range pods {
		c := pod.Spec.Containers[0]
		if c.Name != "c" || c.Image != "registry.example.com/train:1" || len(c.Command) != 1 ||
			pod.Spec.ServiceAccountName != "trainer" || pod.Labels["team"] != "a" {
			t.Errorf("%s does not have the job's own template: %+v, labels %v", pod.Name, pod.Spec, pod.Labels)
		}
		if got := podspec.RequestsOnNode(&pod); got.Cpu().String() != "2" || pod.Spec.NodeSelector["pool"] != "f" {
			t.Errorf("%s requests %v and selects the nodes %v, want 2 CPUs on those of the flavor", pod.Name, got,
				pod.Spec.NodeSelector)
		}
	}
}
