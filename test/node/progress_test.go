package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestPodsReportTheirProgressAsDocumented runs the function of docs/use/progress.md in pods of a batch Job, which get
// what they need from a policy, and of a JobSet, which get it from the operator.
func TestPodsReportTheirProgressAsDocumented(t *testing.T) {
	w := newWorld(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "use", "progress.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(page), "```python\n")
	code, _, closed := strings.Cut(code, "```")
	if !found || !closed {
		t.Fatal("docs/use/progress.md has no code in Python")
	}
	code += "\nimport time\nwhile True:\n  try: report(40, 600)\n  except Exception as e: print(e, flush=True)\n" +
		"  time.sleep(2)\n"
	pod := strings.NewReplacer("CODE", strings.ReplaceAll(code, "\n", "\n          ")).Replace(`
  metadata:
    annotations: {muster.dev/progress: "true"}
  spec:
    restartPolicy: Never
    terminationGracePeriodSeconds: 0
    containers:
    - name: train
      image: python:3
      command: [python3, -c, "$(SCRIPT)"]
      env:
      - name: SCRIPT
        value: |
          CODE`)
	indented := func(by string) string { return strings.ReplaceAll(pod, "\n", "\n"+by) }
	w.apply(`
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: default}
spec: {clusterQueue: default}
---
apiVersion: batch/v1
kind: Job
metadata: {name: batch, labels: {kueue.x-k8s.io/queue-name: default}}
spec:
  template:` + indented("  ") + `
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, labels: {kueue.x-k8s.io/queue-name: default}}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        template:` + indented("        ") + "\n")
	for _, job := range []string{"batch", "set"} {
		w.UntilWorkloadOf(job, "says how much is done", func(wl *kueue.Workload) bool {
			return wl.Annotations[muster.ExpectedEndAnnotation] != "" &&
				strings.HasPrefix(wl.Annotations[muster.ReportedProgressAnnotation], "40% at ")
		})
	}
}
