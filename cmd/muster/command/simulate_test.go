package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulate: one GPU, and two jobs that want it.
func TestSimulate(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	queues := write("queues.yaml", `apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - {coveredResources: [nvidia.com/gpu], flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: gpu, namespace: team}
spec: {clusterQueue: team}
`)
	first := "1 0 -1 10 1 -1 -1 1 20 -1 1 a 1 -1 1 -1 -1 -1\n"
	trace := write("jobs.swf", first+strings.Replace(first, "1 0", "2 4", 1))
	plot := filepath.Join(t.TempDir(), "jobs.csv")
	code, out, errOut := call(t, "simulate", "--trace", trace, "--queues", queues, "--csv", plot)
	if code != exitDone || !strings.Contains(out, "team     2   3s") || errOut != "" {
		t.Errorf("exit code %d, output %q, errors %q; want a mean wait of 3 s", code, out, errOut)
	}
	if csv, err := os.ReadFile(plot); err != nil || !strings.Contains(string(csv), "job-0000001,team/gpu,1,4,10,20,6\n") {
		t.Errorf("the CSV is %q (%v), want the second job to wait 6 s", csv, err)
	}
	code, out, _ = call(t, "simulate", "--trace", trace, "--queues", queues, "--nodes", "+1", "-o", "json")
	if code != exitDone || !strings.Contains(out, `"longestWaitSeconds": 0`) {
		t.Errorf("exit code %d, output %s; want no wait with two GPUs", code, out)
	}
	for path, says := range map[string]string{
		write("bad.swf", first+strings.Replace(first, "1 0", "2 -4", 1)): "bad.swf: line 2: column 2, the submit time",
		write("bad.json", "[{"): "bad.json: line 1: job 1 of the list",
	} {
		if code, _, errOut := call(t, "simulate", "--trace", path, "--queues", queues); code != exitFailed ||
			!strings.Contains(errOut, says) {
			t.Errorf("exit code %d, errors %q; want one that says %q", code, errOut, says)
		}
	}
	if code, _, errOut := call(t, "simulate", "--trace", trace, "--queues", trace); code != exitFailed ||
		!strings.Contains(errOut, "jobs.swf: in the document that begins at line 1") {
		t.Errorf("a log as queues: exit code %d, errors %q", code, errOut)
	}
}
