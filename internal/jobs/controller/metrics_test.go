package controller

import (
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/metrics/metricstest"
)

func TestEachTransitionIsCountedOnce(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	job := func(name, uid string, created time.Time) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid),
			CreationTimestamp: metav1.NewTime(created)}}
	}
	won, lost := jobs.Progress{Outcome: &jobs.Outcome{Succeeded: true}}, jobs.Progress{Outcome: &jobs.Outcome{}}
	old, young := job("old", "1", at.Add(-time.Hour)), job("young", "2", at.Truncate(time.Second))
	again := job("young", "3", at.Add(time.Minute))
	var states jobStates
	for _, step := range []struct {
		what     string
		job      client.Object
		progress jobs.Progress
		want     transition
	}{
		{"created before the operator started", old, jobs.Progress{}, transition{}},
		{"created in the second of the start", young, jobs.Progress{}, transition{created: true}},
		{"no change", young, jobs.Progress{}, transition{}},
		{"restarted", young, jobs.Progress{Restarts: 1}, transition{restarted: true}},
		{"no other restart", young, jobs.Progress{Restarts: 1}, transition{}},
		{"succeeded", young, won, transition{succeeded: true}},
		{"still succeeded", young, won, transition{}},
		{"other job failed", old, lost, transition{failed: true}},
		{"recreated with the same name", again, jobs.Progress{}, transition{created: true, deleted: true}},
		{"finished before the start", job("past", "4", at.Add(-time.Hour)), won, transition{}},
		{"created and failed since the last reconcile", job("quick", "5", at.Add(time.Minute)), lost,
			transition{created: true, failed: true}},
	} {
		if got := states.observe(step.job, step.progress, at); got != step.want {
			t.Errorf("%s: transition = %+v, want %+v", step.what, got, step.want)
		}
	}
	key := client.ObjectKeyFromObject(young)
	if !states.forget(key) || states.forget(key) {
		t.Error("a deletion is not counted exactly once")
	}
}

// TestFirstJobOfAKindIsCounted, though it is first reconciled in the second after its creation.
func TestFirstJobOfAKindIsCounted(t *testing.T) {
	started := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	first := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first", UID: "1",
		CreationTimestamp: metav1.NewTime(started.Add(time.Minute).Truncate(time.Second))}}
	var states jobStates
	states.start(started)
	if got, want := states.observe(first, jobs.Progress{}, started.Add(time.Minute+time.Second)),
		(transition{created: true}); got != want {
		t.Errorf("transition = %+v, want %+v", got, want)
	}
}

// TestJobsAreCountedByKindAndNamespace. JobSets are counted by metrics of their own.
func TestJobsAreCountedByKindAndNamespace(t *testing.T) {
	all := transition{created: true, deleted: true, succeeded: true, failed: true, restarted: true}
	all.count("TrainingJob", "counted")
	all.count("JobSet", "counted")
	values := metricstest.Values(t)
	for _, name := range []string{"created", "deleted", "successful", "failed", "restarted"} {
		if got := values["training_operator_jobs_"+name+"_total{framework=trainingjob,job_namespace=counted}"]; got != 1 {
			t.Errorf("TrainingJobs %s: %v, want 1", name, got)
		}
		if _, too := values["training_operator_jobs_"+name+"_total{framework=jobset,job_namespace=counted}"]; too {
			t.Errorf("the metric of %s jobs includes JobSets", name)
		}
	}
	if values["jobset_completed_total{namespace=counted}"] != 1 || values["jobset_failed_total{namespace=counted}"] != 1 {
		t.Error("the metrics of completed and failed JobSets are not 1")
	}
}

func TestCountsOfADeletedNamespaceAreForgotten(t *testing.T) {
	for _, namespace := range []string{"gone", "there"} {
		for _, kind := range []string{"JobSet", "Job"} {
			transition{created: true, deleted: true, succeeded: true, failed: true, restarted: true}.count(kind, namespace)
		}
	}
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "there"}}
	f := countForgetter{fake.NewClientBuilder().WithObjects(there).Build()}
	series := map[string]int{}
	for _, namespace := range []string{"gone", "there"} {
		if _, err := f.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
		for name := range metricstest.Values(t) {
			if strings.Contains(name, "namespace="+namespace) {
				series[namespace]++
			}
		}
	}
	if want := map[string]int{"there": 7}; !maps.Equal(series, want) {
		t.Errorf("series by namespace = %v, want %v", series, want)
	}
}
