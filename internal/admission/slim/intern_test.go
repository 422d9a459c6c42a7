package slim

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// TestCommonValuesOfPodsAreInterned: equal values are shared, and different values are not merged.
func TestCommonValuesOfPodsAreInterned(t *testing.T) {
	change := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := fullPod(ofJob)
		change(pod)
		return stripped(t, pod)
	}
	first := stripped(t, fullPod(ofJob))
	if same := change(func(p *corev1.Pod) {
		p.Name, p.Spec.Containers[0].Args = "q", nil
	}); &same.Spec.Containers[0] != &first.Spec.Containers[0] ||
		&same.Spec.InitContainers[0] != &first.Spec.InitContainers[0] {
		t.Error("equal pods do not share their containers")
	}
	for name, other := range map[string]*corev1.Pod{
		"a size": change(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "3", "memory", "1Gi")
		}),
		"a resource": change(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "2", "gpu", "1Gi")
		}),
		"a name":       change(func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" }),
		"a host port":  change(func(p *corev1.Pod) { p.Spec.Containers[0].Ports[1].HostPort = 91 }),
		"its address":  change(func(p *corev1.Pod) { p.Spec.Containers[0].Ports[1].HostIP = "1.2.3.4" }),
		"its protocol": change(func(p *corev1.Pod) { p.Spec.Containers[0].Ports[1].Protocol = corev1.ProtocolUDP }),
		"one more": change(func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
		}),
		"the restart policy": change(func(p *corev1.Pod) {
			p.Spec.Containers[0].RestartPolicy = p.Spec.InitContainers[0].RestartPolicy
		}),
	} {
		if cmp.Equal(first.Spec.Containers, other.Spec.Containers) {
			t.Errorf("the different value of %s is lost", name)
		}
	}
}

// TestCommonValuesOfAJobsPodsAreInterned: everything is shared except what distinguishes the pods, which is kept.
func TestCommonValuesOfAJobsPodsAreInterned(t *testing.T) {
	of := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		pod := fullPod(ofJob)
		pod.Name, pod.Spec.Priority, pod.Finalizers = name, ptr.To[int32](7), []string{"batch.kubernetes.io/job-tracking"}
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		change(pod)
		got := stripped(t, pod)
		if !cmp.Equal(pod.Labels, got.Labels) || !cmp.Equal(pod.Finalizers, got.Finalizers) ||
			!cmp.Equal(pod.OwnerReferences, got.OwnerReferences) || !cmp.Equal(pod.Spec.NodeSelector, got.Spec.NodeSelector) ||
			!cmp.Equal(pod.Spec.Priority, got.Spec.Priority) {
			t.Errorf("%s was changed: %+v", name, got)
		}
		return got
	}
	first, second := of("a", func(*corev1.Pod) {}), of("b", func(*corev1.Pod) {})
	for what, pair := range map[string][2]any{
		"labels": {first.Labels, second.Labels}, "annotations": {first.Annotations, second.Annotations},
		"node selector":        {first.Spec.NodeSelector, second.Spec.NodeSelector},
		"owners":               {first.OwnerReferences, second.OwnerReferences},
		"containers' statuses": {first.Status.ContainerStatuses, second.Status.ContainerStatuses},
		"finalizers":           {first.Finalizers, second.Finalizers},
		"priority":             {first.Spec.Priority, second.Spec.Priority},
	} {
		if reflect.ValueOf(pair[0]).Pointer() != reflect.ValueOf(pair[1]).Pointer() {
			t.Errorf("the equal %s are not shared", what)
		}
	}
	of("a label", func(p *corev1.Pod) { p.Labels["app"] = "b" })
	of("another owner", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })
	of("an owner that does not wait", func(p *corev1.Pod) { p.OwnerReferences[0].BlockOwnerDeletion = ptr.To(false) })
	of("another priority", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](8) })
	of("another node", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "m"} })
	unready := of("one that was restarted", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 })
	if got := unready.Status.ContainerStatuses[0].RestartCount; got != 3 {
		t.Errorf("restart count = %d, want 3", got)
	}
}

func TestCommonValuesOfWorkloadsAreInterned(t *testing.T) {
	made := func(cpu, flavor string) *kueue.Workload {
		w := &kueue.Workload{
			Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main",
				Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Args: []string{cpu},
						Resources: corev1.ResourceRequirements{Requests: admissiontest.Quantities("cpu", cpu),
							Limits: admissiontest.Quantities("cpu", cpu)}}}}}}}},
			Status: kueue.WorkloadStatus{Admission: &kueue.Admission{ClusterQueue: "cq",
				PodSetAssignments: []kueue.PodSetAssignment{{
					Name:          "main",
					Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": kueue.ResourceFlavorReference(flavor)},
					ResourceUsage: admissiontest.Quantities("cpu", cpu)}}}},
		}
		whole := w.DeepCopy()
		if _, err := stripWorkload(w); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, w); diff != "" {
			t.Errorf("Workload (-whole +stripped):\n%s", diff)
		}
		return w
	}
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	first, alike := made("1", "a"), made("1", "a")
	asks := func(w *kueue.Workload) corev1.ResourceRequirements {
		return w.Spec.PodSets[0].Template.Spec.Containers[0].Resources
	}
	given := func(w *kueue.Workload) kueue.PodSetAssignment { return w.Status.Admission.PodSetAssignments[0] }
	if !same(asks(first).Requests, asks(alike).Requests) || !same(asks(first).Limits, asks(alike).Limits) ||
		!same(given(first).Flavors, given(alike).Flavors) || !same(given(first).ResourceUsage, given(alike).ResourceUsage) {
		t.Error("equal requests are not shared")
	}
	if &first.Spec.PodSets[0] != &alike.Spec.PodSets[0] {
		t.Error("equal pod sets are not shared")
	}
	made("2", "b") // is unchanged
}

// TestDifferentPodSetsAreNotMerged: pod sets with equal sketches that differ are kept apart.
func TestDifferentPodSetsAreNotMerged(t *testing.T) {
	podSets := func(change func(*kueue.PodSet)) []kueue.PodSet {
		ps := kueue.PodSet{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: fullPod(ofJob).Spec}}
		change(&ps)
		return []kueue.PodSet{ps}
	}
	var a podSetInterner
	first := a.intern(podSets(func(*kueue.PodSet) {}))
	if again := a.intern(podSets(func(*kueue.PodSet) {})); &again[0] != &first[0] {
		t.Error("equal pod sets are not shared")
	}
	for what, change := range map[string]func(*kueue.PodSet){
		"its count":     func(ps *kueue.PodSet) { ps.Count = 2 },
		"its minimum":   func(ps *kueue.PodSet) { ps.MinCount = ptr.To[int32](1) },
		"a variable":    func(ps *kueue.PodSet) { ps.Template.Spec.Containers[0].Env[0].Value = "2" },
		"an argument":   func(ps *kueue.PodSet) { ps.Template.Spec.Containers[0].Args[1] = "200" },
		"a toleration":  func(ps *kueue.PodSet) { ps.Template.Spec.Tolerations = nil },
		"an annotation": func(ps *kueue.PodSet) { ps.Template.Annotations = map[string]string{"a": "b"} },
		"an init image": func(ps *kueue.PodSet) { ps.Template.Spec.InitContainers[0].Image = "other" },
	} {
		want := podSets(change)
		if got := a.intern(podSets(change)); !reflect.DeepEqual(got, want) || reflect.DeepEqual(got, first) {
			t.Errorf("the different value of %s is lost", what)
		}
	}
}

// TestInternersStartOverAtTheirLimit: the memory of interners is bounded.
func TestInternersStartOverAtTheirLimit(t *testing.T) {
	var a interner[int]
	for i := range 3 * maxInterned {
		if got := a.intern([]byte{byte(i), byte(i >> 8), byte(i >> 16)}, i); got != i {
			t.Fatalf("got %d, want %d", got, i)
		}
		if len(a.values) > maxInterned {
			t.Fatalf("%d values are interned, beyond the limit", len(a.values))
		}
	}
}
