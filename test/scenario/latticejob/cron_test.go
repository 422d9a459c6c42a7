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

// TestAJobRunsByItsSchedule: each run is a job of its own that queues, none begins while it is suspended, and they go with whom
// they belong to. A schedule has whole minutes, so the first run takes up to one.
func TestAJobRunsByItsSchedule(t *testing.T) {
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 10)
	nightly := w.job(strings.Replace(small("tick", "", ""), "spec:\n", "spec:\n  schedule: '* * * * *'\n  concurrencyPolicy: Forbid\n", 1))
	w.UntilLatticeJob("tick", "says that it is active", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Running && strings.HasPrefix(job.Status.Message, "Cron ")
	})
	if vcjob := w.VCJob("tick"); vcjob != nil {
		t.Errorf("it runs by itself: %+v", vcjob.Status)
	}
	var first lattice.LatticeJob
	harness.Until(w.World, &lattice.LatticeJobList{}, "a run has succeeded", func(list *lattice.LatticeJobList) bool {
		for _, job := range list.Items {
			if metav1.IsControlledBy(&job, nightly) && job.Status.Phase == lattice.Succeeded {
				first = job
			}
		}
		return first.Name != ""
	})
	at, err := time.Parse(time.RFC3339, first.Annotations[lattice.ScheduledAtAnnotation])
	if err != nil || at.Second() != 0 || at.Before(nightly.CreationTimestamp.Time) || first.Labels[lattice.CronJobLabel] != "tick" || first.Spec.Schedule != "" {
		t.Errorf("the run is %+v, made %s (%v)", first.ObjectMeta, nightly.CreationTimestamp, err)
	}
	w.Change(nightly, func() { nightly.Spec.Suspend = ptr.To(true) }) // though it runs
	suspended := w.UntilLatticeJob("tick", "is suspended, with nothing under way", func(job *lattice.LatticeJob) bool {
		return strings.HasPrefix(job.Status.Message, "Cron active: 0 job(s), last scheduled: ") && strings.HasSuffix(job.Status.Message, ", suspended")
	})
	if last := suspended.Status.LastScheduleTime; last == nil || last.Time.Before(at) {
		t.Errorf("its last time is %v, that of a run is %s", last, at)
	}
	explainsRuns(w, nightly)
	w.Delete(nightly)
	harness.Until(w.World, &lattice.LatticeJobList{}, "its runs are gone", func(list *lattice.LatticeJobList) bool { return len(list.Items) == 0 })
	w.UntilPods("and their pods", func(pods map[string]corev1.Pod) bool { return len(pods) == 0 })
}

// explainsRuns: asked about the schedule, which waits for nothing itself, `muster explain` names the last run, and of that says all.
func explainsRuns(w *world, nightly *lattice.LatticeJob) {
	w.Helper()
	said, code := w.Explain("latticejob/" + nightly.Name)
	_, rest, named := strings.Cut(said, "`muster explain -n "+w.Namespace+" latticejob/")
	run, _, _ := strings.Cut(rest, "`")
	if code != notFound || !named || !strings.Contains(said, `runs by its schedule "* * * * *"`) {
		w.Fatalf("explain of the schedule ends with %d and says:\n%s", code, said)
	}
	found := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: run, Namespace: w.Namespace}}
	w.Get(found)
	if !metav1.IsControlledBy(found, nightly) {
		w.Errorf("explain names %s, which is none of its runs: %+v", run, found.ObjectMeta)
	}
	if said, code := w.Explain("latticejob/" + run); code != 0 || !strings.Contains(said, w.Namespace+"/latticejob/"+run) {
		w.Errorf("explain of the run ends with %d and says:\n%s", code, said)
	}
}

// notFound is the exit code of a command that was asked about what is no job.
const notFound = 3
