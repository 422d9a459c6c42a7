package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestLatticeJobHasItsFilesAndIsProbed runs a task that serves a file of the manifest. Its readiness probe reads that
// file; its liveness probe checks another one, and the kubelet restarts the container when that is removed.
func TestLatticeJobHasItsFilesAndIsProbed(t *testing.T) {
	w := newWorld(t)
	w.apply(`
apiVersion: lattice.dev/v1alpha1
kind: LatticeJob
metadata: {name: web}
spec:
  tasks:
    server:
      replicas: 1
      restartPolicy: OnFailure
      workload:
        containers:
          main:
            image: busybox:1
            command: [/bin/sh, -c, "touch /tmp/alive; exec httpd -f -p 8080 -h /site"]
            security: {runAsUser: 1000, apparmorProfile: Unconfined}
            resources: {limits: {cpu: 100m, memory: 64Mi}}
            variables: {NAME: "${metadata.name}"}
            files:
              /site/index.html: {content: "hello from ${metadata.name}"}
              /site/run.sh: {content: "echo run by $NAME", mode: "0755", noExpand: true}
            volumes:
              /tmp: {}
            readinessProbe: {httpGet: {path: /index.html, port: 8080}, periodSeconds: 1}
            livenessProbe: {exec: {command: [/bin/test, -e, /tmp/alive]}, periodSeconds: 1, failureThreshold: 1}
`)
	harness.UntilOne(w.World, &lattice.LatticeJobList{}, "web", "runs",
		func(job *lattice.LatticeJob) bool { return job.Status.Phase == lattice.Running })
	name := "web-server-0"
	w.untilPod(name, "is ready", ready)
	for command, want := range map[string]string{
		"wget -qO- http://127.0.0.1:8080/index.html": "hello from web-server",
		"/site/run.sh":   "run by web-server\n",
		"id -u":          "1000\n",
		"touch /site/no": "Read-only file system",
	} {
		output, _ := w.tryKubectl("exec", name, "--", "sh", "-c", command)
		if !strings.Contains(output, want) {
			t.Errorf("output of %q = %q, want it to contain %q", command, output, want)
		}
	}
	w.kubectl("exec", name, "--", "rm", "/tmp/alive")
	w.untilPod(name, "is restarted and ready",
		func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1 })
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// TestClaimOutlivesTheLatticeJobThatCreatedIt writes a file to a volume with a size, which is a claim, and deletes the
// job. The next job with the same claim must read the file.
func TestClaimOutlivesTheLatticeJobThatCreatedIt(t *testing.T) {
	w := newWorld(t)
	w.provisionClaims()
	job := func(name, command string) string {
		return `
apiVersion: lattice.dev/v1alpha1
kind: LatticeJob
metadata: {name: ` + name + `}
spec:
  tasks:
    main:
      replicas: 1
      restartPolicy: Never
      workload:
        containers:
          main:
            image: busybox:1
            command: [/bin/sh, -c, "` + command + `"]
            security: {runAsUser: 1000, apparmorProfile: Unconfined}
            resources: {limits: {cpu: 100m, memory: 64Mi}}
            volumes:
              /data: {source: "${resources.data}"}
        resources:
          data: {type: volume, id: shared, params: {size: 1Gi, storageClass: ` + w.Namespace + `}}
`
	}
	w.apply(job("writes", "echo kept > /data/note"))
	w.untilSucceeded("writes")
	w.kubectl("delete", "latticejob", "writes", "--wait")
	w.apply(job("reads", "cat /data/note"))
	w.untilSucceeded("reads")
	if log := w.logs("reads-main-0", "main"); log != "kept\n" {
		t.Errorf("the second job read %q, want %q", log, "kept\n")
	}
}

// untilSucceeded waits until the LatticeJob has succeeded.
func (w *world) untilSucceeded(name string) {
	w.Helper()
	harness.UntilOne(w.World, &lattice.LatticeJobList{}, name, "has succeeded",
		func(job *lattice.LatticeJob) bool { return job.Status.Phase == lattice.Succeeded })
}
