package operators

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestWhatPodsMountAndDoesNotExistIsNamed by explain and in the list while the pods wait for it, and then by the
// message of the eviction: a claim of pods in a PodGroup, of which kube-scheduler says nothing that helps, and a
// ConfigMap, of which only events of the pods do. There is no kubelet, so that the test says what one would.
func TestWhatPodsMountAndDoesNotExistIsNamed(t *testing.T) {
	w := newWorld(t)
	w.podQueue(8)
	w.operate(w.configured("waitForPodsReady: {timeout: 30s, requeuingStrategy: {backoffBaseSeconds: 3600}}"))
	config := w.Job("config", "q", 2)
	config.Spec.Template.Spec.SchedulerName = "the-test"
	config.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}}}}
	of := w.Job("claim", "q", 2).Spec
	of.CompletionMode, of.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2)
	of.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.UntilHeld(config, true)
	w.Create(config, &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: w.Namespace,
		Labels: map[string]string{kueue.QueueLabel: "q"}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: of}}}}})

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: corev1.NodeSpec{Unschedulable: true}}
	w.Shared(node)
	pods := w.UntilPodsOf("config", 2)
	for i := range pods {
		if err := w.Client.SubResource("binding").Create(t.Context(), &pods[i],
			&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}); err != nil {
			t.Fatal(err)
		}
		w.Create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pods[i].Name},
			Type: corev1.EventTypeWarning, Reason: "FailedMount",
			Message: `MountVolume.SetUp failed for volume "config" : configmap "gone" not found`, LastTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: w.Namespace, Name: pods[i].Name, UID: pods[i].UID}})
	}
	grouped := w.UntilPodsOf("claim-workers-0", 2)
	if grouped[0].Spec.SchedulingGroup == nil {
		t.Error("the pods with a claim are in no PodGroup")
	}
	missing := map[string]string{
		"job/config":   `volume "config" cannot be mounted: configmap "gone" not found`,
		"jobset/claim": "claim data does not exist",
	}
	for job, want := range missing {
		if output, code := w.Explain(job); code != 0 || !strings.Contains(output, want) {
			t.Errorf("explain %s exited with code %d, want 0 and %q in the output:\n%s", job, code, want, output)
		}
	}
	for job, want := range missing {
		if output, code := w.Muster("jobs", "-n", w.Namespace); code != 0 || !strings.Contains(output, want) {
			t.Errorf("jobs exited with code %d, want 0 and, of %s, %q in the output:\n%s", code, job, want, output)
		}
	}
	for job, want := range missing {
		_, name, _ := strings.Cut(job, "/")
		wl := w.UntilWorkloadOf(name, "is evicted", func(wl *kueue.Workload) bool {
			return is(wl, kueue.WorkloadEvicted, metav1.ConditionTrue, kueue.WorkloadEvictedByPodsReadyTimeout)
		})
		said := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted).Message
		if !strings.Contains(said, ": 2 of 2 pods like ") || !strings.HasSuffix(said, want) {
			t.Errorf("%s was evicted with the message %q, want that of 2 pods and %q", job, said, want)
		}
	}
	for i := range pods { // no kubelet ends them
		if err := client.IgnoreNotFound(w.Client.Delete(t.Context(), &pods[i], client.GracePeriodSeconds(0))); err != nil {
			t.Fatal(err)
		}
	}
}
