package operators

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/test/bench/operator"
)

// TestTrainingJobsOfAnotherGroup: they run as those of breezeml.ai do, and people see them.
func TestTrainingJobsOfAnotherGroup(t *testing.T) {
	w := newWorld(t)
	const group = "training.example.com"
	err := install.Apply(t.Context(), w.Cluster.Config, install.Options{
		OperatorUser: install.DefaultOperatorUser, TrainingJobGroup: group, Volcano: v1alpha1.VolcanoAuto,
		Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	operator.StartFor(t, binary(), w.Cluster, group, w.configured("trainingJob: {group: "+group+"}")).AwaitReady(t)
	w.podQueue(2)
	w.Create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "TrainingJob",
		"metadata": map[string]any{"name": "ours", "namespace": w.Namespace,
			"labels": map[string]any{"kueue.x-k8s.io/queue-name": "q"}},
		"spec": map[string]any{"minSize": 2, "maxSize": 2, "runPolicy": map[string]any{},
			"replicaSpecs": map[string]any{"template": map[string]any{
				"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "none"}}}}}},
	}})
	var workers map[string]corev1.Pod
	w.UntilPods("its two workers are made",
		func(pods map[string]corev1.Pod) bool { workers = pods; return len(pods) == 2 })
	for _, pod := range workers {
		owner := metav1.GetControllerOf(&pod)
		if gv, _ := schema.ParseGroupVersion(owner.APIVersion); gv.Group != group {
			t.Errorf("%s belongs to a %s of %s", pod.Name, owner.Kind, owner.APIVersion)
		}
		w.SetPodStatus(pod, corev1.PodRunning, 0)
	}

	said, err := exec.CommandContext(t.Context(), "../../../bin/muster", "jobs", "-n", w.Namespace, "-o", "json",
		"--kubeconfig", w.Cluster.Kubeconfig).Output()
	if err != nil {
		t.Fatalf("muster jobs: %v", err)
	}
	var listed struct {
		Items []struct{ Kind, APIGroup, Name string }
	}
	if err := json.Unmarshal(said, &listed); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	if len(listed.Items) != 1 || listed.Items[0].Kind != "TrainingJob" || listed.Items[0].APIGroup != group ||
		listed.Items[0].Name != "ours" {
		t.Errorf("muster jobs lists %+v:\n%s", listed.Items, said)
	}
}
