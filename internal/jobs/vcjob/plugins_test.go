package vcjob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// variables of the main container of a pod, by name.
func variables(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		out[v.Name] = v.Value
		if v.ValueFrom != nil {
			out[v.Name] = "from " + v.ValueFrom.ConfigMapKeyRef.Name
		}
	}
	return out
}

func TestPluginEnvTellsPodsTheirNumber(t *testing.T) {
	job := newJob().with("worker", 2, func(task *volcano.TaskSpec) {
		task.Template.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	}).plugin("env")
	pod := made(t, see(t, job.Job, admitted("worker", 2), nil), "job-worker-1")
	same(t, "variables", map[string]string{"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"}, variables(pod))
	if env := pod.Spec.InitContainers[0].Env; len(env) != 2 {
		t.Errorf("init containers have %v", env)
	}
}

func TestVariablesOfTheTemplateAreNotOverwritten(t *testing.T) {
	job := newJob().with("master", 1, func(task *volcano.TaskSpec) {
		task.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RANK", Value: "mine"}}
	}).plugin("pytorch")
	if got := variables(made(t, see(t, job.Job, admitted("master", 1), nil), "job-master-0"))["RANK"]; got != "mine" {
		t.Errorf("RANK %q", got)
	}
}
