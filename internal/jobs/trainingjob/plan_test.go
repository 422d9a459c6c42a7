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

func TestJobGetsAsManyWorkersAsGranted(t *testing.T) {
	job := newJob(2, 4)
	p := see(t, now, job.TrainingJob, waiting, nil)
	same(t, "while it waits", nil, writes(p))
	job = then(p, job)
	same(t, "then it is", "Waiting 0", stands(job))
	same(t, "its conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created."}, conditions(job))
	for what, at := range map[string]*metav1.Time{"submitTime": job.Status.SubmitTime, "queuedTime": job.Status.QueuedTime} {
		if !at.Equal(&job.CreationTimestamp) {
			t.Errorf("%s is %s, not that of its creation", what, at)
		}
	}

	p = see(t, now, job.TrainingJob, admitted(2), nil)
	same(t, "once it has two", []string{
		"create Pod job-worker-0", "create Pod job-worker-1", "create Service job-worker-0", "create Service job-worker-1"}, writes(p))
	job = then(p, job)
	same(t, "then it is", "Running 2", stands(job))
	if s := &job.Status; !s.LastExecTime.Time.Equal(now) || !s.ExecStatus.StartTime.Time.Equal(now) {
		t.Errorf("it says that it was started at %v and %v", s.LastExecTime, s.ExecStatus.StartTime)
	}

	p = see(t, now, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1).Running()))
	same(t, "grown to four", []string{"create Pod job-worker-2", "create Pod job-worker-3",
		"create Service job-worker-0", "create Service job-worker-1", "create Service job-worker-2", "create Service job-worker-3"}, writes(p))
	same(t, "it tells", []string{"Normal Resized: The job continues with 4 workers instead of 2"}, events(p))
	job = then(p, job)
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.", "Running=True TrainingJobRunning: TrainingJob job is running."}, conditions(job))

	p = see(t, now, job.TrainingJob, admitted(3), of(pod(0), pod(1).Running(), pod(2).Running(), pod(3).Running()))
	if got := writes(p); got[3] != "delete Pod job-worker-0" || len(got) != 4 {
		t.Errorf("shrunk to three: %v, want the pending pod deleted", got)
	}
	same(t, "its queue is told", map[string]int32{worker: 4}, p.Progress.Pods)
	if !p.Progress.Ready || !p.Progress.Active {
		t.Errorf("its queue is told %+v", p.Progress)
	}
}

func TestServicesAreDeletedWithTheirWorkers(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-1", Namespace: "ns"}}
	job := then(see(t, now, newJob(1, 2).TrainingJob, admitted(2), nil), newJob(1, 2))
	p := see(t, now, job.TrainingJob, admitted(1), append(of(pod(0).Running(), pod(1).Running()), service))
	same(t, "shrunk", []string{"create Service job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-1"}, writes(p))
}

func TestFinishingJobDoesNotGrow(t *testing.T) {
	job := newJob(1, 4)
	grant := func(n int32) jobs.Admission {
		a := admitted(n)
		a.PodSets[worker] = jobs.PodSetAdmission{Count: n, Asked: 4}
		return a
	}
	job = then(see(t, now, job.TrainingJob, grant(2), nil), job)
	there := of(pod(0).Ended(0), pod(1).Running())
	p := see(t, now, job.TrainingJob, grant(2), there)
	same(t, "its queue is told that it does not", map[string]int32{worker: 1}, p.Progress.Reclaimable)
	p = see(t, now, job.TrainingJob, grant(4), there)
	same(t, "grown meanwhile", "Running 2", stands(then(p, job)))
	if pods := podsIn(p); len(pods) > 0 {
		t.Errorf("it makes %d pods, which begin again", len(pods))
	}
	same(t, "none of its own quota is lent", nil, p.Progress.Reclaimable)
	p = see(t, now, job.TrainingJob, grant(4), of(pod(0).Running(), pod(1).Running()))
	same(t, "while all train it grows", "Running 4", stands(then(p, job)))
}

func TestRoundSizesOfRunningPodsAreUpdated(t *testing.T) {
	job := newJob(2, 4)
	job = then(see(t, now, job.TrainingJob, admitted(3), nil), job)
	worker := func(i int, sizes string) jobstest.Pod {
		p := pod(i).Running()
		p.Annotations[muster.RendezvousSizeAnnotation] = sizes
		return p
	}
	for what, test := range map[string]struct {
		least, most int32
		want        string
	}{
		"raised beyond what runs": {4, 8, "3:8"},
		"lowered":                 {1, 3, "1:3"},
	} {
		job.Spec.MinSize, job.Spec.MaxSize = &test.least, &test.most
		p := see(t, now, job.TrainingJob, admitted(3), of(worker(0, "2:4"), worker(1, "2:4"), worker(2, test.want)))
		changed := map[string]string{}
		for _, w := range p.Writes {
			if w.Verb() == "change" {
				changed[w.Object().GetName()] = w.Object().GetAnnotations()[muster.RendezvousSizeAnnotation]
			}
		}
		same(t, what, map[string]string{"job-worker-0": test.want, "job-worker-1": test.want}, changed)
	}
}

// TestRefusalsAreNotOvercomeWhileWorkersAreMissing: the API server may not report an ongoing refusal again.
func TestRefusalsAreNotOvercomeWhileWorkersAreMissing(t *testing.T) {
	for running, missing := range map[int]int32{1: 2, 2: 1, 3: 0} {
		var pods []client.Object
		for i := range running {
			pods = append(pods, pod(i).Running().Pod)
		}
		if got := see(t, now, newJob(2, 3).TrainingJob, admitted(3), pods).Progress.Lacking; got != missing {
			t.Errorf("with %d of 3 workers, of which 2 are enough, %d are missing, want %d", running, got, missing)
		}
	}
}
