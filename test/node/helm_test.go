package node

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/test/node/machine"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestHelmInstallsTheChartInPlaceOfTheBundle replaces the operator of the bundle by a Helm release, which must then run
// a job to completion. The test is not parallel: the parallel tests run after it, with the release.
func TestHelmInstallsTheChartInPlaceOfTheBundle(t *testing.T) {
	machine.Node(t, images)
	w := &world{harness.New(t)}
	w.printAfterFailure()
	kubectl := func(arguments ...string) {
		t.Helper()
		if _, err := machine.Kubectl(t.Context(), w.Cluster, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	// Two operators would run the same jobs.
	kubectl("delete", "deployment", "lattice-operator", "--namespace", "muster-system",
		"--cascade=foreground", "--timeout=1m")
	output, err := machine.Helm(t.Context(), w.Cluster, "install", "operator",
		filepath.Join("..", "..", "charts", "muster"), "--namespace", "lattice", "--create-namespace", "--take-ownership",
		"--wait", "--timeout", "3m")
	if err != nil {
		pods, _ := machine.Kubectl(t.Context(), w.Cluster, "describe", "pods", "--namespace", "lattice")
		t.Fatalf("%v\n%s", err, pods)
	}
	t.Log(output)
	kubectl("delete", "namespace", "muster-system", "--wait=false")
	w.apply(`
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: default}
spec: {clusterQueue: default}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: greets
  labels: {kueue.x-k8s.io/queue-name: default}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: busybox:1
              command: [sh, -c, "echo hello from $JOB_COMPLETION_INDEX"]
              resources: {requests: {cpu: 10m}}
`)
	w.untilCompleted("greets")
	for index, want := range []string{"hello from 0\n", "hello from 1\n"} {
		if got := w.logsOfWorker("greets", index); got != want {
			t.Errorf("log of worker %d = %q, want %q", index, got, want)
		}
	}
}
