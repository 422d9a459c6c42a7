package trainingjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

// TestOutcome checks by which ends and restarts of pods a running job of two workers ends.
func TestOutcome(t *testing.T) {
	limit := func(b jobBuilder, n int32) jobBuilder { b.Spec.RunPolicy.BackoffLimit = &n; return b }
	twice := pod(0).Running()
	twice.Status.ContainerStatuses[0].RestartCount = 2
	hungry := pod(0).Ended(137)
	hungry.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
	for name, tc := range map[string]struct {
		job  jobBuilder
		pods []client.Object
		want string // the condition of the end; "" for none
	}{
		"all succeeded": {newJob(1, 2), of(pod(0).Ended(0), pod(1).Ended(0)),
			"Succeeded=True TrainingJobSucceeded: TrainingJob job is successfully completed."},
		"one succeeded, one runs": {newJob(1, 2), of(pod(0).Ended(0), pod(1).Running()), ""},
		"one failed": {newJob(1, 2), of(pod(0).Ended(3), pod(1).Running()),
			"Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 3 in job-worker-0"},
		"one out of memory": {newJob(1, 2), of(hungry, pod(1).Running()),
			"Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 137 in job-worker-0 (OOMKilled)"},
		"one disrupted": {newJob(1, 2),
			of(pod(0).Ended(137).Disrupted(), pod(1).Running()), ""},
		"one failed, restarted": {newJob(1, 2).restarts(breezeml.RestartOnFailure),
			of(pod(0).Ended(3), pod(1).Running()), ""},
		"exit code of the program, ExitCode": {newJob(1, 2).restarts(breezeml.RestartExitCode),
			of(pod(0).Ended(127), pod(1).Running()),
			"Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 127 in job-worker-0"},
		"exit code of a signal, ExitCode": {newJob(1, 2).restarts(breezeml.RestartExitCode),
			of(pod(0).Ended(128), pod(1).Running()), ""},
		"as many restarts as backoffLimit": {limit(newJob(1, 2).restarts(breezeml.RestartOnFailure), 1),
			of(pod(0).Ended(3), pod(1).Running()), ""},
		"more restarts than backoffLimit": {limit(newJob(1, 2).restarts(breezeml.RestartOnFailure), 1),
			of(pod(0).Ended(3), pod(1).Ended(4)),
			"Failed=True TrainingJobFailed: TrainingJob job has failed because it has reached the specified backoff limit: exit code 3 in job-worker-0"},
		"as many restarts of a container as backoffLimit": {limit(newJob(1, 2).restarts(breezeml.RestartAlways), 2),
			of(twice, pod(1).Running()), ""},
		"more restarts of a container than backoffLimit": {limit(newJob(1, 2).restarts(breezeml.RestartAlways), 1),
			of(twice, pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job has failed because it has reached the specified backoff limit: 2 restarts of containers in job-worker-0"},
		"surplus worker failed": {newJob(1, 2), of(pod(0).Running(), pod(1).Running(), pod(5).Ended(9)),
			"Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 9 in job-worker-5"},
	} {
		t.Run(name, func(t *testing.T) {
			job := withStatus(checkedPlan(t, now, tc.job.TrainingJob, admitted(2), nil), tc.job)
			job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
			p := checkedPlan(t, now, job.TrainingJob, admitted(2), tc.pods)
			job = withStatus(p, job)
			end := ""
			if all := conditions(job); outcomeOf(job.TrainingJob) != nil {
				end = all[len(all)-1]
			}
			same(t, "condition of the end", tc.want, end)
			if tc.want == "" {
				same(t, "stage", "Running 2", stageAndSize(job))
				return
			}
			same(t, "stage", "Completed 0", stageAndSize(job))
			if s := &job.Status; !p.StatusFirst || !s.CompletionTime.Time.Equal(now) ||
				!s.ExecStatus.CompletionTime.Time.Equal(now) {
				t.Errorf("status first: %v, status %+v; want true and completion times", p.StatusFirst, s)
			}
			kind, why := corev1.EventTypeWarning, strings.TrimPrefix(tc.want, "Failed=True ")
			if outcomeOf(job.TrainingJob).Succeeded {
				kind, why = corev1.EventTypeNormal, strings.TrimPrefix(tc.want, "Succeeded=True ")
			}
			same(t, "events", []string{kind + " " + why}, events(p))
			if !slices.Contains(conditions(job), "Running=False "+why) {
				t.Errorf("conditions %v, want Running False for the same reason", conditions(job))
			}
		})
	}
}

// TestExitCodeIsThatOfTheTrainingContainer: kubelets list the statuses of containers by name, whatever their order in
// the pod.
func TestExitCodeIsThatOfTheTrainingContainer(t *testing.T) {
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	for name, tc := range map[string]struct {
		containers []string
		statuses   []corev1.ContainerStatus
		fails      bool
	}{
		"the first was ended by a signal, another succeeded": {[]string{"train", "log"},
			[]corev1.ContainerStatus{ended("log", 0), ended("train", 137)}, false},
		"the first failed, another was ended by a signal": {[]string{"train", "log"},
			[]corev1.ContainerStatus{ended("log", 137), ended("train", 1)}, true},
		"the one of the default name failed, the first by signal": {[]string{"log", "trainingjob"},
			[]corev1.ContainerStatus{ended("log", 137), ended("trainingjob", 1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(1, 1).restarts(breezeml.RestartExitCode)
			failed := pod(0).Ended(1)
			failed.Spec.Containers = nil
			for _, container := range tc.containers {
				failed.Spec.Containers = append(failed.Spec.Containers, corev1.Container{Name: container})
			}
			failed.Status.ContainerStatuses = tc.statuses
			job.Spec.ReplicaSpecs.Template.Spec.Containers = failed.Spec.Containers
			job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(1), of(pod(0).Running())), job)
			p := checkedPlan(t, now, job.TrainingJob, admitted(1), of(failed))
			if o := outcomeOf(withStatus(p, job).TrainingJob); (o != nil) != tc.fails {
				t.Errorf("outcome %+v, want a failure: %v", o, tc.fails)
			} else if tc.fails && !strings.HasSuffix(o.Message, "exit code 1 in job-worker-0") {
				t.Errorf("message %q, want the exit code that decided", o.Message)
			}
		})
	}
}

// TestRestartsOfContainersMatter: a container may run again so soon that only its number of restarts shows it, and
// nothing else may happen until the end of the job.
func TestRestartsOfContainersMatter(t *testing.T) {
	matters := API(Settings{}).Watch.Matters
	runs, again := pod(0).Running().Pod, pod(0).Running().Pod
	again.ResourceVersion = "2"
	if matters(runs, again) {
		t.Error("an update that changes nothing matters")
	}
	again.Status.ContainerStatuses[0].RestartCount = 1
	if !matters(runs, again) {
		t.Error("a restart of a container, which counts towards backoffLimit, does not matter")
	}
}

func TestRestartIsCountedOnceAndReported(t *testing.T) {
	job := newJob(1, 2).restarts(breezeml.RestartOnFailure)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	pods := of(pod(0).Ended(3), pod(1).Running())
	p := checkedPlan(t, now, job.TrainingJob, admitted(2), pods)
	job = withStatus(p, job)
	same(t, "restarts", map[string]int32{"0": 1}, job.Status.Restarts)
	if !p.StatusFirst {
		t.Error("the count of restarts, which makes the pod an outdated one, is not written first")
	}
	want := []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Restarting=True TrainingJobRestarting: TrainingJob job is restarting because 1 worker replica(s) failed: exit code 3 in job-worker-0"}
	same(t, "conditions", want, conditions(job))
	p = checkedPlan(t, now, job.TrainingJob, admitted(2), pods) // the operator was killed before it deleted the pod
	same(t, "writes", []string{"create Service job-worker-0", "create Service job-worker-1",
		"delete Pod job-worker-0"}, writes(p))
	same(t, "restarts", map[string]int32{"0": 1}, withStatus(p, job).Status.Restarts)
	job = withStatus(p, job)
	same(t, "conditions", want, conditions(job))
	p = checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Attempt(1).Running(), pod(1).Running()))
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Running=True TrainingJobRunning: TrainingJob job is running."}, conditions(withStatus(p, job)))
	p = checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Attempt(1).Running(), pod(1).Ended(3)))
	same(t, "restarts of both", map[string]int32{"0": 1, "1": 1}, withStatus(p, job).Status.Restarts)
}

func TestCleanPodPolicy(t *testing.T) {
	services := func() []client.Object {
		return []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-0"}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-1"}}}
	}
	for policy, want := range map[breezeml.CleanPodPolicy][]string{
		"": {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-0",
			"delete Service job-worker-1"},
		breezeml.CleanPodAll: {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-0",
			"delete Service job-worker-1"},
		breezeml.CleanPodRunning: {"delete Pod job-worker-1", "delete Service job-worker-1"},
		breezeml.CleanPodNone:    nil,
	} {
		job := newJob(1, 2).cleans(policy)
		job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
		p := checkedPlan(t, now, job.TrainingJob, admitted(2), append(of(pod(0).Ended(1), pod(1).Running()), services()...))
		same(t, "writes with cleanPodPolicy "+string(policy), want, writes(p))
		stopped := checkedPlan(t, now, withStatus(p, job).TrainingJob, stopping,
			append(of(pod(0).Ended(1), pod(1).Running()), services()...))
		if got := writes(stopped); !slices.Contains(got, "delete Pod job-worker-1") {
			t.Errorf("cleanPodPolicy %q: writes without quota: %v, want the pod that runs deleted", policy, got)
		}
		for _, p := range []jobs.Plan{p, stopped} {
			if p.Progress.Outcome != nil {
				t.Errorf("cleanPodPolicy %q: Progress has an outcome while a pod may run: %+v", policy, p.Progress)
			}
		}
		if p := checkedPlan(t, now, withStatus(p, job).TrainingJob, admitted(2),
			of(pod(0).Ended(1))); p.Progress.Outcome == nil {
			t.Errorf("cleanPodPolicy %q: Progress has no outcome once no pod runs", policy)
		}
	}
}

// TestPodsThatOutliveTheJobFollowItsQuota: pods that run on after the end stop as far as the queue gives their quota to
// other jobs, which would wait for them otherwise, and the job wants no more pods than these.
func TestPodsThatOutliveTheJobFollowItsQuota(t *testing.T) {
	job := newJob(1, 4).cleans(breezeml.CleanPodNone)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4), nil), job)
	pods := of(pod(0).Ended(1), pod(1), pod(2).Running(), pod(3).Running())
	p := checkedPlan(t, now, job.TrainingJob, admitted(4), pods)
	job = withStatus(p, job)
	same(t, "stage", "Completed 0", stageAndSize(job))
	for _, tc := range []struct {
		granted int32
		want    []string
	}{
		{4, nil},
		{3, nil},
		{2, []string{"delete Pod job-worker-1"}},
		{1, []string{"delete Pod job-worker-1", "delete Pod job-worker-3"}},
	} {
		p := checkedPlan(t, now, job.TrainingJob, admitted(tc.granted), pods)
		same(t, fmt.Sprintf("writes with quota for %d", tc.granted), tc.want, writes(p))
		if got := p.Progress; !got.OutcomePending || got.Outcome != nil || got.Pods[worker] != 3 {
			t.Errorf("with quota for %d the queue is told %+v, want the end and 3 pods", tc.granted, got)
		}
	}
	p = checkedPlan(t, now, job.TrainingJob, admitted(1),
		of(pod(0).Ended(1), pod(1).Running().Terminating(), pod(2).Running()))
	same(t, "writes while a pod terminates", nil, writes(p))
	if p.Progress.Pods[worker] != 2 {
		t.Errorf("while a pod terminates the queue is told of %d pods, want 2", p.Progress.Pods[worker])
	}
}

func TestTTLSecondsAfterFinished(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](60)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(1), nil), job)
	p := checkedPlan(t, now, job.TrainingJob, admitted(1), of(pod(0).Ended(0)))
	job = withStatus(p, job)
	if !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("due at %s, want a minute after the end", p.Due)
	}
	same(t, "writes a second before", nil, writes(checkedPlan(t, now.Add(59*time.Second), job.TrainingJob, waiting, nil)))
	same(t, "writes when due", []string{"delete TrainingJob job"},
		writes(checkedPlan(t, now.Add(time.Minute), job.TrainingJob, waiting, nil)))
}

func TestActiveDeadline(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(1), nil), job)
	if p := checkedPlan(t, now.Add(59*time.Second), job.TrainingJob, admitted(1),
		of(pod(0).Running())); p.Progress.Outcome != nil || !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("a second before the deadline: plan %+v, want no outcome and a due time", p)
	}
	for name, grant := range map[string]jobs.Admission{"running": admitted(1), "waiting": waiting} {
		p := checkedPlan(t, now.Add(time.Minute), job.TrainingJob, grant, of(pod(0).Running()))
		if o := outcomeOf(withStatus(p, job).TrainingJob); o == nil ||
			o.Message != "TrainingJob job has failed because it was active longer than specified deadline" {
			t.Errorf("%s: outcome %+v, want a failure by the deadline", name, o)
		}
	}
}
