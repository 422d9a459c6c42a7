package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestAnySuccessIsEnough: of the replicated jobs that are targets; what runs still is removed then.
func TestAnySuccessIsEnough(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: jobset.OperatorAny, TargetReplicatedJobs: []string{"workers"}}
	w.Create(js)
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.succeed("js-leader-0")
	w.jobSet("js", "counts it, and goes on", func(js *jobset.JobSet) bool {
		return counts("leader", 0, 1, 0, 0, 0)(js) && js.Status.TerminalState == ""
	})
	w.succeed("js-workers-1")
	w.jobSet("js", "completes", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
	w.thereAre("js-leader-0", "js-workers-1") // what had ended is kept for its logs
}

// TestARestartOfASingleJobMayNotCount: it is made anew as often as it fails, though there is no budget.
func TestARestartOfASingleJobMayNotCount(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(0, jobset.FailurePolicyRule{Action: jobset.RestartJobAndIgnoreMaxRestarts, TargetReplicatedJobs: []string{"workers"}})
	w.Create(js)
	made := w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
	for attempt := int32(1); attempt <= 2; attempt++ {
		w.run("js-leader-0", "js-workers-0", "js-workers-1")
		w.fail(1, "js-workers-0")
		w.jobs("of workers-0 are of the next attempt", func(jobs map[string]batchv1.Job) bool {
			return jobs["js-workers-0"].Labels[jobset.JobRestartAttemptKey] == string('0'+rune(attempt)) && len(jobs) == 3
		})
	}
	w.UntilEvent("js", jobset.RestartJobIgnoreMaxRestartsReason)
	js = w.jobSet("js", "has counted both", func(js *jobset.JobSet) bool {
		return len(js.Status.ReplicatedJobsStatus[0].JobRestarts) == 2 && js.Status.ReplicatedJobsStatus[0].JobRestarts[0] == 2
	})
	if s := js.Status.ReplicatedJobsStatus[0]; s.JobRestarts[1] != 0 || js.Status.Restarts != 0 || len(s.JobRestartsCountTowardsMax) > 0 && s.JobRestartsCountTowardsMax[0] != 0 {
		t.Errorf("status %+v", js.Status)
	}
	for name, job := range w.thereAre("js-leader-0", "js-workers-0", "js-workers-1") {
		if (job.UID == made[name].UID) == (name == "js-workers-0") {
			t.Errorf("%s: made anew: %v", name, job.UID != made[name].UID)
		}
	}
	// The rule is for the workers alone: without a budget the leader's failure is the end.
	w.fail(1, "js-leader-0")
	w.jobSet("js", "fails", is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.ReachedMaxRestartsReason))
}

// TestTheNetworkIsAsSpecified: without host names there is no Service, and pods that are not ready may be left out of
// it.
func TestTheNetworkIsAsSpecified(t *testing.T) {
	w := newWorld(t)
	without, ready := w.named("without", w.replicated("r", 1, 1)), w.named("ready", w.replicated("r", 1, 1))
	without.Spec.Network = &jobset.Network{EnableDNSHostnames: ptr.To(false)}
	ready.Spec.Network = &jobset.Network{PublishNotReadyAddresses: ptr.To(false)}
	w.Create(without, ready)
	w.thereAre("without-r-0", "ready-r-0")
	service := w.services("there is that of one", func(s map[string]corev1.Service) bool { return len(s) == 1 && s["ready"].Name != "" })["ready"]
	if service.Spec.PublishNotReadyAddresses || service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("Service %+v", service.Spec)
	}
	if pod := w.podsOf("without-r-0")[0]; pod.Spec.Subdomain != "" {
		t.Errorf("subdomain %q", pod.Spec.Subdomain)
	}
}
