package node

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestWorkersOfTheDocumentedJobSetConnectByName runs the documentation's manifest unchanged. Its image name resolves to
// a test image, whose torchrun only connects the workers to the first one by its DNS name.
func TestWorkersOfTheDocumentedJobSetConnectByName(t *testing.T) {
	w := newWorld(t)
	w.kubectl("apply", "-f", example("jobset", "jobset-pytorch.yaml"))
	w.untilCompleted("pytorch")
	for index := range 4 {
		log := w.logsOfWorker("pytorch", index)
		if want := fmt.Sprintf("rank %d: sum 6 by pytorch-workers-0-0.pytorch\n", index); !strings.HasSuffix(log, want) {
			t.Errorf("log of worker %d = %q, want it to end with %q", index, log, want)
		}
	}
}

// TestWorkersOfAQueuedJobSetConnect runs a ring of workers in a queue. Each worker listens, and connects to the next
// one by its DNS name.
func TestWorkersOfAQueuedJobSetConnect(t *testing.T) {
	w := newWorld(t).in("science")
	w.kubectl("apply", "-f", example("jobset", "pi-ring.yaml"))
	w.untilCompleted("pi")
	for index := range 4 {
		if log := w.logsOfWorker("pi", index); !strings.Contains(log, "pi is 3.14159265") {
			t.Errorf("log of worker %d = %q, want it to contain the result", index, log)
		}
	}
}

// untilCompleted waits until the JobSet has completed.
func (w *world) untilCompleted(name string) {
	w.Helper()
	harness.UntilOne(w.World, &jobset.JobSetList{}, name, "has completed", func(job *jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, string(jobset.JobSetCompleted))
	})
}

// logsOfWorker returns the log of the pod of this index of the replicated job `workers`.
func (w *world) logsOfWorker(job string, index int) string {
	w.Helper()
	var pods corev1.PodList
	err := w.Client.List(w.Context(), &pods, client.InNamespace(w.Namespace), client.MatchingLabels{
		jobset.JobSetNameKey: job, "batch.kubernetes.io/job-completion-index": fmt.Sprint(index)})
	if err != nil || len(pods.Items) != 1 {
		w.Fatalf("%s has %d pods of worker %d, want 1 (%v)", job, len(pods.Items), index, err)
	}
	return w.logs(pods.Items[0].Name, pods.Items[0].Spec.Containers[0].Name)
}
