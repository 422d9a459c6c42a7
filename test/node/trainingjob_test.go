package node

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestTrainingGrowsWithAgentsFromTheImage runs the example with a longer duration, and with its files in a folder that
// is removed with the node. It runs with two workers while the other job of the example runs, and then grows to four.
// The agent is copied from the operator's image, and connects to the operator by the name of its Service.
func TestTrainingGrowsWithAgentsFromTheImage(t *testing.T) {
	w := newWorld(t).in("training")
	manifest, err := os.ReadFile(example("trainingjob", "elastic-training.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	edited := string(manifest)
	for old, replacement := range map[string]string{`"STEPS", "2400"`: `"STEPS", "100000000"`,
		"path: /tmp/": "path: /run/"} {
		before := edited
		if edited = strings.Replace(before, old, replacement, 1); edited == before {
			t.Fatalf("the example does not contain %q, which this test replaces", old)
		}
	}
	w.apply(edited)
	pod := w.untilPod("spirals-worker-0", "runs",
		func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if !slices.ContainsFunc(pod.Spec.InitContainers,
		func(c corev1.Container) bool { return strings.HasPrefix(c.Image, "muster-operator:") }) {
		t.Errorf("%s has no init container with the operator's image", pod.Name)
	}
	w.untilLogHas(pod.Name, "trainingjob", "round of 2 begins at step 0", "workers 2")
	w.untilLogHas(pod.Name, "trainingjob", "saved at step", "round of 4 begins at step")
	w.untilLogHas(pod.Name, "trainingjob", "workers 4")
	after := w.untilPod("spirals-worker-0", "runs",
		func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if after.UID != pod.UID {
		t.Errorf("pod %s was replaced, want it to continue in the second round", pod.Name)
	}
	if strings.Contains(w.logs("spirals-worker-0", "trainingjob"), "round of 4 begins at step 0\n") {
		t.Error("the second round began at step 0, want the step that the first round saved")
	}
	w.kubectl("delete", "trainingjob", "spirals")
}

// TestExitCodeDecidesWhetherAWorkerIsRestarted runs a worker with the restart policy ExitCode. Exit code 130 must
// restart it, and exit code 3 must fail the job.
func TestExitCodeDecidesWhetherAWorkerIsRestarted(t *testing.T) {
	w := newWorld(t)
	w.apply(`
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: default}
spec: {clusterQueue: default}
---
apiVersion: breezeml.ai/v1
kind: TrainingJob
metadata: {name: codes}
spec:
  minSize: 1
  maxSize: 1
  runPolicy: {cleanPodPolicy: None}
  replicaSpecs:
    restartPolicy: ExitCode
    template:
      spec:
        containers:
        - name: trainingjob
          image: busybox:1
          command: [sh, -c, "test -e /state/ran && exit 3; touch /state/ran; exit 130"]
          volumeMounts: [{name: state, mountPath: /state}]
        volumes:
        - name: state
          hostPath: {path: /run/` + w.Namespace + `, type: DirectoryOrCreate}
`)
	job := harness.UntilOne(w.World, &breezeml.TrainingJobList{}, "codes",
		"has failed", func(job *breezeml.TrainingJob) bool {
			return has(job, breezeml.JobFailed)
		})
	if has(job, breezeml.JobSucceeded) {
		t.Error("the job has both conditions Failed and Succeeded, want only Failed")
	}
	pod := w.untilPod("codes-worker-0", "exists", func(*corev1.Pod) bool { return true })
	if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("exit code of the last attempt = %d, want 3", code)
	}
	if restarts := pod.Annotations["muster.dev/restarts"]; restarts != "1" {
		t.Errorf("restarts of the worker = %q, want 1", restarts)
	}
}

func has(job *breezeml.TrainingJob, kind breezeml.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.ExecStatus.Conditions, func(c breezeml.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
