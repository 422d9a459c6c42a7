package trainingjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestOutcome(t *testing.T) {
	limit := func(b jobBuilder, n int32) jobBuilder { b.Spec.RunPolicy.BackoffLimit = &n; return b }
	twice := pod(0).Running()
	twice.Status.ContainerStatuses[0].RestartCount = 2
	for what, test := range map[string]struct {
		job  jobBuilder
		pods []client.Object
		want string // the condition that ends it, or ""
	}{
		"all have succeeded":              {newJob(1, 2), of(pod(0).Ended(0), pod(1).Ended(0)), "Succeeded=True TrainingJobSucceeded: TrainingJob job is successfully completed."},
		"one has, one runs":               {newJob(1, 2), of(pod(0).Ended(0), pod(1).Running()), ""},
		"one has failed":                  {newJob(1, 2), of(pod(0).Ended(3), pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 3 in job-worker-0"},
		"one was ended for its node":      {newJob(1, 2), of(pod(0).Ended(137).Disrupted(), pod(1).Running()), ""},
		"one is retried":                  {newJob(1, 2).restarts(breezeml.RestartOnFailure), of(pod(0).Ended(3), pod(1).Running()), ""},
		"a program's own exit code":       {newJob(1, 2).restarts(breezeml.RestartExitCode), of(pod(0).Ended(127), pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 127 in job-worker-0"},
		"one of a signal":                 {newJob(1, 2).restarts(breezeml.RestartExitCode), of(pod(0).Ended(128), pod(1).Running()), ""},
		"as often as it may":              {limit(newJob(1, 2).restarts(breezeml.RestartOnFailure), 1), of(pod(0).Ended(3), pod(1).Running()), ""},
		"more often":                      {limit(newJob(1, 2).restarts(breezeml.RestartOnFailure), 1), of(pod(0).Ended(3), pod(1).Ended(4)), "Failed=True TrainingJobFailed: TrainingJob job has failed because it has reached the specified backoff limit: exit code 3 in job-worker-0"},
		"on its node as often as it may":  {limit(newJob(1, 2).restarts(breezeml.RestartAlways), 2), of(twice, pod(1).Running()), ""},
		"on its node more often":          {limit(newJob(1, 2).restarts(breezeml.RestartAlways), 1), of(twice, pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job has failed because it has reached the specified backoff limit: 2 restarts of containers in job-worker-0"},
		"one that it had too many failed": {newJob(1, 2), of(pod(0).Running(), pod(1).Running(), pod(5).Ended(9)), "Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 9 in job-worker-5"},
	} {
		t.Run(what, func(t *testing.T) {
			job := then(see(t, now, test.job.TrainingJob, admitted(2), nil), test.job)
			job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
			p := see(t, now, job.TrainingJob, admitted(2), test.pods)
			job = then(p, job)
			over := ""
			if all := conditions(job); outcome(job.TrainingJob) != nil {
				over = all[len(all)-1]
			}
			same(t, "the end", test.want, over)
			if test.want == "" {
				same(t, "it is", "Running 2", stands(job))
				return
			}
			same(t, "it is", "Completed 0", stands(job))
			if s := &job.Status; !p.StatusFirst || !s.CompletionTime.Time.Equal(now) || !s.ExecStatus.CompletionTime.Time.Equal(now) || isTrue(job.TrainingJob, breezeml.JobRunning) {
				t.Errorf("its status is %+v", s)
			}
		})
	}
}

func TestRestartIsCountedOnceAndReported(t *testing.T) {
	job := newJob(1, 2).restarts(breezeml.RestartOnFailure)
	job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	pods := of(pod(0).Ended(3), pod(1).Running())
	p := see(t, now, job.TrainingJob, admitted(2), pods)
	job = then(p, job)
	same(t, "restarts", map[string]int32{"0": 1}, job.Status.Restarts)
	if !p.StatusFirst {
		t.Error("what makes the pod one of the past is not written first")
	}
	want := []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Restarting=True TrainingJobRestarting: TrainingJob job is restarting because 1 worker replica(s) failed: exit code 3 in job-worker-0"}
	same(t, "conditions", want, conditions(job))
	p = see(t, now, job.TrainingJob, admitted(2), pods) // killed before it was deleted
	same(t, "again", []string{"create Service job-worker-0", "create Service job-worker-1", "delete Pod job-worker-0"}, writes(p))
	same(t, "restarts", map[string]int32{"0": 1}, then(p, job).Status.Restarts)
	job = then(p, job)
	same(t, "conditions", want, conditions(job))
	p = see(t, now, job.TrainingJob, admitted(2), of(pod(0).Attempt(1).Running(), pod(1).Running()))
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.", "Running=True TrainingJobRunning: TrainingJob job is running."}, conditions(then(p, job)))
}

func TestCleanPodPolicy(t *testing.T) {
	services := func() []client.Object {
		return []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-0"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-1"}}}
	}
	for policy, want := range map[breezeml.CleanPodPolicy][]string{
		"":                       {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-0", "delete Service job-worker-1"},
		breezeml.CleanPodAll:     {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-0", "delete Service job-worker-1"},
		breezeml.CleanPodRunning: {"delete Pod job-worker-1", "delete Service job-worker-1"},
		breezeml.CleanPodNone:    nil,
	} {
		job := newJob(1, 2).cleans(policy)
		job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
		p := see(t, now, job.TrainingJob, admitted(2), append(of(pod(0).Ended(1), pod(1).Running()), services()...))
		same(t, "with "+string(policy), want, writes(p))
		stopped := see(t, now, then(p, job).TrainingJob, stopping, append(of(pod(0).Ended(1), pod(1).Running()), services()...))
		for _, p := range []jobs.Plan{p, stopped} {
			if p.Progress.Outcome != nil {
				t.Errorf("with %s its queue is told that it is over while a pod may run: %+v", policy, p.Progress)
			}
		}
		if p := see(t, now, then(p, job).TrainingJob, admitted(2), of(pod(0).Ended(1))); p.Progress.Outcome == nil {
			t.Errorf("with %s its queue is not told the end", policy)
		}
	}
}

func TestTTLSecondsAfterFinished(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](60)
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	p := see(t, now, job.TrainingJob, admitted(1), of(pod(0).Ended(0)))
	job = then(p, job)
	if !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("it is due at %s", p.Due)
	}
	same(t, "a second before", nil, writes(see(t, now.Add(59*time.Second), job.TrainingJob, waiting, nil)))
	same(t, "then", []string{"delete TrainingJob job"}, writes(see(t, now.Add(time.Minute), job.TrainingJob, waiting, nil)))
}

func TestActiveDeadline(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	if p := see(t, now.Add(59*time.Second), job.TrainingJob, admitted(1), of(pod(0).Running())); p.Progress.Outcome != nil || !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("a second before, it plans %+v", p)
	}
	for what, grant := range map[string]jobs.Admission{"while it runs": admitted(1), "while it waits": waiting} {
		p := see(t, now.Add(time.Minute), job.TrainingJob, grant, of(pod(0).Running()))
		if o := outcome(then(p, job).TrainingJob); o == nil || o.Message != "TrainingJob job has failed because it was active longer than specified deadline" {
			t.Errorf("%s it ends %+v", what, o)
		}
	}
}
