package genericjob

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// TestAJobThatToleratesAFailedReplicaIsReady: else its queue would evict it for pods that
// are not ready, again and again.
func TestAJobThatToleratesAFailedReplicaIsReady(t *testing.T) {
	job := newJob().with("worker", 3, tensorstack.RestartPolicy{Limit: 1}).succeedsBy(rule("worker", 0))
	run := func(what string, ready bool, pods ...jobstest.Pod) {
		t.Helper()
		p := see(t, job.GenericJob, admitted, of(pods...))
		job = then(p, job)
		if p.Progress.Ready != ready {
			t.Errorf("%s: its queue is told that it is ready: %v", what, p.Progress.Ready)
		}
	}
	zero, one, two := pod("job-worker-0").Running(), pod("job-worker-1").Running(), pod("job-worker-2").Running()
	run("all run", true, zero, one, two)
	run("one has failed and is restarted", false, zero, one.Ended(1), two)
	run("it has failed for good", true, zero, pod("job-worker-1").Attempt(1).Ended(1), two)
	run("its pod is gone", true, zero, two)
	run("another does not start", false, zero, pod("job-worker-2"))
}

func TestAJobThatHasEndedIsReadyWhateverRunsOn(t *testing.T) {
	job := newJob().with("worker", 2).succeedsBy(rule("worker", 0))
	pods := of(pod("job-worker-0").Ended(0), pod("job-worker-1"))
	for _, when := range []string{"at the end", "later on"} {
		p := see(t, job.GenericJob, admitted, pods)
		if job = then(p, job); !p.Progress.Ready || p.Progress.Outcome != nil || !p.Progress.Active {
			t.Errorf("%s its queue is told %+v", when, p.Progress)
		}
	}
}

// TestAReplicaThatHasEndedHasStarted: however it has.
func TestAReplicaThatHasEndedHasStarted(t *testing.T) {
	job := newJob().with("worker", 2).succeedsBy(rule("worker", 0))
	job = then(see(t, job.GenericJob, unqueued, nil), job)
	pods := of(pod("job-worker-0").Running(), pod("job-worker-1").Ended(1))
	p := see(t, job.GenericJob, unqueued, pods)
	if got := then(p, job).Status.Phase; got != tensorstack.JobPhaseRunning {
		t.Errorf("with all started it is %s", got)
	}
	if got := conditions(t, p)[1]; !strings.HasPrefix(got, "Running=False") {
		t.Errorf("with one failed: %s", got)
	}
	job.Status.Phase = tensorstack.JobPhaseResuming
	if got := then(see(t, job.GenericJob, unqueued, pods), job).Status.Phase; got != tensorstack.JobPhaseRunning {
		t.Errorf("with all started after a pause it is %s", got)
	}
}

// TestThePodGroupIsMadeBeforeThePods: and again while a pod has no node, for nobody binds that pod without.
func TestThePodGroupIsMadeBeforeThePods(t *testing.T) {
	job := newJob().with("worker", 2)
	job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: "q"}}
	for what, test := range map[string]struct {
		admission jobs.Admission
		pods      []jobstest.Pod
		want      bool
	}{
		"without pods":            {admitted, nil, true},
		"with pods without nodes": {admitted, []jobstest.Pod{pod("job-worker-0"), pod("job-worker-1")}, true},
		"with all pods bound": {admitted,
			[]jobstest.Pod{pod("job-worker-0").Running(), pod("job-worker-1").Running()}, false},
		"in its queue": {waiting, nil, false},
	} {
		p := plan(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Admission: test.admission,
			Children: of(test.pods...), Now: now,
			Facts: jobs.Facts{Served: map[schema.GroupResource]bool{t9kPodGroups: true}}})
		if got := len(p.First) == 1 &&
			p.First[0].Object().GetObjectKind().GroupVersionKind().Kind == "PodGroup"; got != test.want {
			t.Errorf("%s: the PodGroup is made first: %v (%d writes first)", what, got, len(p.First))
		}
		for _, w := range p.Writes {
			if w.Object().GetObjectKind().GroupVersionKind().Kind == "PodGroup" {
				t.Errorf("%s: it is made beside the pods", what)
			}
		}
	}
}
