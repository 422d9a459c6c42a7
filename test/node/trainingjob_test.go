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

// The example with a longer duration, and with its files in a folder that ends with the node: it runs with two workers
// while its neighbour runs, and then with four. The agent comes from the operator's image, and reaches the operator by
// the name of its Service.
func TestATrainingGrowsWithAgentsFromTheImage(t *testing.T) {
	w := newWorld(t).in("training")
	manifest, err := os.ReadFile(example("trainingjob", "elastic-training.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	edited := string(manifest)
	for old, now := range map[string]string{`"STEPS", "2400"`: `"STEPS", "100000000"`, "path: /tmp/": "path: /run/"} {
		before := edited
		if edited = strings.Replace(before, old, now, 1); edited == before {
			t.Fatalf("the example has no %s any more", old)
		}
	}
	w.apply(edited)
	pod := w.untilPod("spirals-worker-0", "runs", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if !slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return strings.HasPrefix(c.Image, "muster-operator:") }) {
		t.Errorf("no init container of %s is of the operator's image", pod.Name)
	}
	w.untilSays(pod.Name, "trainingjob", "round of 2 begins at step 0", "workers 2")
	w.untilSays(pod.Name, "trainingjob", "saved at step", "round of 4 begins at step")
	w.untilSays(pod.Name, "trainingjob", "workers 4")
	after := w.untilPod("spirals-worker-0", "runs", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if after.UID != pod.UID {
		t.Error("the worker did not keep its pod")
	}
	if strings.Contains(w.logs("spirals-worker-0", "trainingjob"), "round of 4 begins at step 0\n") {
		t.Error("the second round did not go on from what the first had saved")
	}
	w.kubectl("delete", "trainingjob", "spirals")
}

// A worker whose program exits with 130 is restarted, and one that exits with 3 fails the job.
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
	job := harness.UntilOne(w.World, &breezeml.TrainingJobList{}, "codes", "has failed", func(job *breezeml.TrainingJob) bool {
		return has(job, breezeml.JobFailed)
	})
	if has(job, breezeml.JobSucceeded) {
		t.Error("it has succeeded too")
	}
	pod := w.untilPod("codes-worker-0", "is there", func(*corev1.Pod) bool { return true })
	if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("the job failed with the exit code %d", code)
	}
	if pod.Annotations["muster.dev/restarts"] != "1" {
		t.Errorf("the pod was made anew %q times", pod.Annotations["muster.dev/restarts"])
	}
}

func has(job *breezeml.TrainingJob, kind breezeml.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.ExecStatus.Conditions, func(c breezeml.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
