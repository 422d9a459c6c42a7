package controller_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// atLimit deactivates and evicts the Workload as package admission/lifecycle does at its time limit.
func (w *world) atLimit(wl *kueue.Workload) {
	w.t.Helper()
	wl.Spec.Active = ptr.To(false)
	if err := w.api.Update(w.t.Context(), wl); err != nil {
		w.t.Fatal(err)
	}
	workload.Evict(wl, workload.Eviction{Reason: kueue.WorkloadDeactivated,
		Cause: kueue.WorkloadMaximumExecutionTimeExceeded, Message: "The workload is deactivated"}, w.clock.Now())
	w.updateStatus(wl)
}

// stopsAtLimit are, by API, the writes by which the pods of a job are told to end at its time limit: the pods are
// deleted, or the Jobs that create them are suspended. Either way the containers get SIGTERM, and the time that
// terminationGracePeriodSeconds says.
var stopsAtLimit = map[string][]string{
	"batch Job":   {"change Job job"},
	"JobSet":      {"change Job job-leader-0", "change Job job-workers-0", "change Job job-workers-1"},
	"GenericJob":  {"delete Pod job-master-0", "delete Pod job-worker-0", "delete Pod job-worker-1"},
	"VCJob":       {"delete Pod job-master-0", "delete Pod job-worker-0"},
	"TrainingJob": {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Pod job-worker-2"},
}

// TestAJobIsStoppedAtItsTimeLimitWithGrace, in every API: deletions that set a grace period fail in this world.
func TestAJobIsStoppedAtItsTimeLimitWithGrace(t *testing.T) {
	for name, start := range keptWorlds {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			pods := len(list[corev1.PodList](w.world).Items)
			before := len(w.writes)
			w.atLimit(w.workload())
			w.reconcile()
			var stops []string
			for _, what := range w.writes[before:] {
				verb, rest, _ := strings.Cut(what, " ")
				if what, _, _ := strings.Cut(verb+" "+rest, " #"); slices.Contains(stopsAtLimit[name], what) {
					stops = append(stops, what)
				}
			}
			slices.Sort(stops)
			if pods == 0 || !slices.Equal(stops, stopsAtLimit[name]) {
				t.Errorf("with %d pods the writes are %v, want %v among them", pods, w.writes[before:], stopsAtLimit[name])
			}
			for _, job := range w.batchJobs() {
				if !ptr.Deref(job.Spec.Suspend, false) {
					t.Errorf("Job %s is not suspended", job.Name)
				}
			}
		})
	}
}

// TestALatticeJobIsStoppedAtItsTimeLimitWithGrace: the VCJob is deleted, and its pods with it as Kubernetes collects
// garbage, which leaves them their grace period too.
func TestALatticeJobIsStoppedAtItsTimeLimitWithGrace(t *testing.T) {
	w := runWithVolcano(t)
	before := len(w.writes)
	w.atLimit(w.workload())
	w.settle()
	if !slices.ContainsFunc(w.writes[before:], func(what string) bool { return strings.HasPrefix(what, "delete Job ") }) {
		t.Errorf("the writes are %v, want that the VCJob is deleted", w.writes[before:])
	}
}
