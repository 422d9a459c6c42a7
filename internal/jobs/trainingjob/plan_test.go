package trainingjob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// TestJobGetsAsManyWorkersAsGranted: the job waits, is admitted with two workers, grows to four and shrinks to three.
func TestJobGetsAsManyWorkersAsGranted(t *testing.T) {
	job := newJob(2, 4)
	p := checkedPlan(t, now, job.TrainingJob, waiting, nil)
	same(t, "writes while it waits", nil, writes(p))
	job = withStatus(p, job)
	same(t, "stage", "Waiting 0", stageAndSize(job))
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created."}, conditions(job))
	for field, at := range map[string]*metav1.Time{"submitTime": job.Status.SubmitTime,
		"queuedTime": job.Status.QueuedTime} {
		if !at.Equal(&job.CreationTimestamp) {
			t.Errorf("%s = %s, want the time of the creation", field, at)
		}
	}

	p = checkedPlan(t, now, job.TrainingJob, admitted(2), nil)
	same(t, "writes for two workers", []string{
		"create Pod job-worker-0", "create Pod job-worker-1", "create Service job-worker-0",
		"create Service job-worker-1"}, writes(p))
	job = withStatus(p, job)
	same(t, "stage", "Running 2", stageAndSize(job))
	if s := &job.Status; !s.LastExecTime.Time.Equal(now) || !s.ExecStatus.StartTime.Time.Equal(now) {
		t.Errorf("lastExecTime = %v, startTime = %v, want now", s.LastExecTime, s.ExecStatus.StartTime)
	}

	p = checkedPlan(t, now, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1).Running()))
	same(t, "writes for four workers", []string{"create Pod job-worker-2", "create Pod job-worker-3",
		"create Service job-worker-0", "create Service job-worker-1", "create Service job-worker-2",
		"create Service job-worker-3"}, writes(p))
	same(t, "events", []string{"Normal Resized: The job continues with 4 workers instead of 2"}, events(p))
	job = withStatus(p, job)
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Running=True TrainingJobRunning: TrainingJob job is running."}, conditions(job))

	p = checkedPlan(t, now, job.TrainingJob, admitted(3), of(pod(0), pod(1).Running(), pod(2).Running(), pod(3).Running()))
	if got := writes(p); got[3] != "delete Pod job-worker-0" || len(got) != 4 {
		t.Errorf("writes for three workers: %v, want the pending pod deleted", got)
	}
	same(t, "pods that use quota", map[string]int32{worker: 4}, p.Progress.Pods)
	if !p.Progress.Ready || !p.Progress.Active {
		t.Errorf("progress = %+v, want it ready and active", p.Progress)
	}
}

func TestServicesAreDeletedWithTheirWorkers(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-1", Namespace: "ns"}}
	job := withStatus(checkedPlan(t, now, newJob(1, 2).TrainingJob, admitted(2), nil), newJob(1, 2))
	p := checkedPlan(t, now, job.TrainingJob, admitted(1), append(of(pod(0).Running(), pod(1).Running()), service))
	same(t, "writes of the shrunk job",
		[]string{"create Service job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-1"}, writes(p))
}

// TestFinishingJobDoesNotGrow: once a worker has succeeded, new ones would start the training from the beginning.
func TestFinishingJobDoesNotGrow(t *testing.T) {
	job := newJob(1, 4)
	grant := func(n int32) jobs.Admission {
		a := admitted(n)
		a.PodSets[worker] = jobs.PodSetAdmission{Count: n, Asked: 4}
		return a
	}
	job = withStatus(checkedPlan(t, now, job.TrainingJob, grant(2), nil), job)
	pods := of(pod(0).Ended(0), pod(1).Running())
	p := checkedPlan(t, now, job.TrainingJob, grant(2), pods)
	same(t, "reclaimable pods", map[string]int32{worker: 1}, p.Progress.Reclaimable)
	p = checkedPlan(t, now, job.TrainingJob, grant(4), pods)
	same(t, "stage with more quota", "Running 2", stageAndSize(withStatus(p, job)))
	if created := podsIn(p); len(created) > 0 {
		t.Errorf("%d pods are created or deleted, want none", len(created))
	}
	same(t, "reclaimable pods with more quota", nil, p.Progress.Reclaimable)
	p = checkedPlan(t, now, job.TrainingJob, grant(4), of(pod(0).Running(), pod(1).Running()))
	same(t, "stage while all workers run", "Running 4", stageAndSize(withStatus(p, job)))
}

// TestRoundSizesOfRunningPodsAreUpdated: changes of the job's sizes are written to the annotation of its pods, with a
// minimum of at most the workers that run.
func TestRoundSizesOfRunningPodsAreUpdated(t *testing.T) {
	job := newJob(2, 4)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(3), nil), job)
	worker := func(i int, sizes string) jobstest.Pod {
		p := pod(i).Running()
		p.Annotations[muster.RendezvousSizeAnnotation] = sizes
		return p
	}
	for name, tc := range map[string]struct {
		least, most int32
		want        string
	}{
		"raised above the workers that run": {4, 8, "3:8"},
		"lowered":                           {1, 3, "1:3"},
	} {
		job.Spec.MinSize, job.Spec.MaxSize = &tc.least, &tc.most
		p := checkedPlan(t, now, job.TrainingJob, admitted(3), of(worker(0, "2:4"), worker(1, "2:4"), worker(2, tc.want)))
		changed := map[string]string{}
		for _, w := range p.Writes {
			if w.Verb() == "change" {
				changed[w.Object().GetName()] = w.Object().GetAnnotations()[muster.RendezvousSizeAnnotation]
			}
		}
		same(t, name, map[string]string{"job-worker-0": tc.want, "job-worker-1": tc.want}, changed)
	}
}

// TestRefusalsAreNotOvercomeWhileWorkersAreMissing: missing workers above the minimum count too, since an ongoing
// refusal may not be reported again.
func TestRefusalsAreNotOvercomeWhileWorkersAreMissing(t *testing.T) {
	for running, missing := range map[int]int32{1: 2, 2: 1, 3: 0} {
		var pods []client.Object
		for i := range running {
			pods = append(pods, pod(i).Running().Pod)
		}
		if got := checkedPlan(t, now, newJob(2, 3).TrainingJob, admitted(3), pods).Progress.Missing; got != missing {
			t.Errorf("with %d of 3 workers and a minimum of 2, %d are missing, want %d", running, got, missing)
		}
	}
}
