package node

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// A worker whose program ends with 130 is made anew, and one whose program ends with 3 fails the job.
func TestAWorkerIsMadeAnewOrNotByItsExitCode(t *testing.T) {
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
