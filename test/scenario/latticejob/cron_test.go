package latticejob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAJobRunsByItsSchedule: each run of a scheduled job is a LatticeJob that it owns, a suspended schedule starts no
// runs, and the runs are deleted with their schedule. Schedules are in whole minutes, so the first run starts within
// one.
func TestAJobRunsByItsSchedule(t *testing.T) {
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 10)
	nightly := w.job(strings.Replace(small("tick", "", ""), "spec:\n",
		"spec:\n  schedule: '* * * * *'\n  concurrencyPolicy: Forbid\n", 1))
	w.UntilLatticeJob("tick", "reports an active schedule", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Running && strings.HasPrefix(job.Status.Message, "Cron ")
	})
	if vcjob := w.VCJob("tick"); vcjob != nil {
		t.Errorf("the schedule itself has a VCJob with status %+v, want none", vcjob.Status)
	}
	var first lattice.LatticeJob
	harness.Until(w.World, &lattice.LatticeJobList{}, "a run of the schedule has succeeded",
		func(list *lattice.LatticeJobList) bool {
			for _, job := range list.Items {
				if metav1.IsControlledBy(&job, nightly) && job.Status.Phase == lattice.Succeeded {
					first = job
				}
			}
			return first.Name != ""
		})
	at, err := time.Parse(time.RFC3339, first.Annotations[lattice.ScheduledAtAnnotation])
	if err != nil || at.Second() != 0 || at.Before(nightly.CreationTimestamp.Time) ||
		first.Labels[lattice.CronJobLabel] != "tick" || first.Spec.Schedule != "" {
		t.Errorf("run = %+v, want the label of its schedule, created %s, and a whole minute after that: %v", first.ObjectMeta,
			nightly.CreationTimestamp, err)
	}
	w.Change(nightly, func() { nightly.Spec.Suspend = ptr.To(true) }) // possibly during a run
	suspended := w.UntilLatticeJob("tick", "is suspended, with no active run", func(job *lattice.LatticeJob) bool {
		return strings.HasPrefix(job.Status.Message, "Cron active: 0 job(s), last scheduled: ") &&
			strings.HasSuffix(job.Status.Message, ", suspended")
	})
	if last := suspended.Status.LastScheduleTime; last == nil || last.Time.Before(at) {
		t.Errorf("lastScheduleTime = %v, want at least that of the first run, %s", last, at)
	}
	expectExplainNamesRun(w, nightly)
	w.Delete(nightly)
	harness.Until(w.World, &lattice.LatticeJobList{}, "the runs are deleted",
		func(list *lattice.LatticeJobList) bool { return len(list.Items) == 0 })
	w.UntilPods("the pods are deleted", func(pods map[string]corev1.Pod) bool { return len(pods) == 0 })
}

// expectExplainNamesRun checks that `muster explain` of a schedule, which itself waits for nothing, names its last run,
// and that it explains this run.
func expectExplainNamesRun(w *world, nightly *lattice.LatticeJob) {
	w.Helper()
	output, code := w.Explain("latticejob/" + nightly.Name)
	_, rest, named := strings.Cut(output, "`muster explain -n "+w.Namespace+" latticejob/")
	run, _, _ := strings.Cut(rest, "`")
	if code != notFound || !named || !strings.Contains(output, `runs by its schedule "* * * * *"`) {
		w.Fatalf("explain of the schedule exits with %d, want %d and the last run, and prints:\n%s", code, notFound, output)
	}
	found := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: run, Namespace: w.Namespace}}
	w.Get(found)
	if !metav1.IsControlledBy(found, nightly) {
		w.Errorf("explain names %s, which is not a run of the schedule: %+v", run, found.ObjectMeta)
	}
	if output, code := w.Explain("latticejob/" + run); code != 0 ||
		!strings.Contains(output, w.Namespace+"/latticejob/"+run) {
		w.Errorf("explain of the run exits with %d, want 0, and prints:\n%s", code, output)
	}
}

// notFound is the exit code of `muster explain` for an object without a Workload of its own.
const notFound = 3
