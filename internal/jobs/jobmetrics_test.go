package jobs

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterhq/muster/internal/metrics/metricstest"
)

func TestEachTransitionIsCountedOnce(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	job := func(name, uid string, created time.Time) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)}}
	}
	won, lost := Progress{Outcome: &Outcome{Succeeded: true}}, Progress{Outcome: &Outcome{}}
	old, young := job("old", "1", at.Add(-time.Hour)), job("young", "2", at.Truncate(time.Second))
	again := job("young", "3", at.Add(time.Minute))
	var l jobStates
	for _, step := range []struct {
		what string
		job  client.Object
		p    Progress
		want transition
	}{
		{"one that was there before is not new", old, Progress{}, transition{}},
		{"one of this second is", young, Progress{}, transition{created: true}},
		{"nothing happened", young, Progress{}, transition{}},
		{"it starts pods anew", young, Progress{Restarts: 1}, transition{restarted: true}},
		{"which counts once", young, Progress{Restarts: 1}, transition{}},
		{"it succeeds", young, won, transition{succeeded: true}},
		{"which counts once too", young, won, transition{}},
		{"the other fails", old, lost, transition{failed: true}},
		{"another takes the name", again, Progress{}, transition{created: true, deleted: true}},
		{"who had ended before is not counted", job("past", "4", at.Add(-time.Hour)), won, transition{}},
		{"who came and ended at once is", job("quick", "5", at.Add(time.Minute)), lost, transition{created: true, failed: true}},
	} {
		if got := l.observe(step.job, step.p, at); got != step.want {
			t.Errorf("%s: got %+v, want %+v", step.what, got, step.want)
		}
	}
	key := client.ObjectKeyFromObject(young)
	if !l.forget(key) || l.forget(key) {
		t.Error("a deletion does not count once")
	}
}

// TestFirstJobOfAKindIsCounted, though it is reconciled in the second after that of its creation.
func TestFirstJobOfAKindIsCounted(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	first := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first", UID: "1", CreationTimestamp: metav1.NewTime(began.Add(time.Minute).Truncate(time.Second))}}
	var l jobStates
	l.start(began)
	if got, want := l.observe(first, Progress{}, began.Add(time.Minute+time.Second)), (transition{created: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestJobsAreCountedByKindAndNamespace, and JobSets by metrics of their own.
func TestJobsAreCountedByKindAndNamespace(t *testing.T) {
	all := transition{created: true, deleted: true, succeeded: true, failed: true, restarted: true}
	all.count("TrainingJob", "counted")
	all.count("JobSet", "counted")
	values := metricstest.Values(t)
	for _, name := range []string{"created", "deleted", "successful", "failed", "restarted"} {
		if got := values["training_operator_jobs_"+name+"_total{framework=trainingjob,job_namespace=counted}"]; got != 1 {
			t.Errorf("%s: %v", name, got)
		}
		if _, too := values["training_operator_jobs_"+name+"_total{framework=jobset,job_namespace=counted}"]; too {
			t.Errorf("JobSets are among them, as %s", name)
		}
	}
	if values["jobset_completed_total{namespace=counted}"] != 1 || values["jobset_failed_total{namespace=counted}"] != 1 {
		t.Error("JobSets are not counted")
	}
}
