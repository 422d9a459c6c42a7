package jobset

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestAnySuccessIsEnough: with the success policy Any, the first succeeded Job of a target completes the JobSet. The
// Jobs that still run are deleted.
func TestAnySuccessIsEnough(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: jobset.OperatorAny, TargetReplicatedJobs: []string{"workers"}}
	w.Create(js)
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.succeed("js-leader-0")
	w.untilJobSet("js", "has a succeeded leader and is not completed", func(js *jobset.JobSet) bool {
		return counts("leader", 0, 1, 0, 0, 0)(js) && js.Status.TerminalState == ""
	})
	w.succeed("js-workers-1")
	w.untilJobSet("js", "is completed", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
	w.untilOnlyJobs("js-leader-0", "js-workers-1") // the finished Jobs are kept for their logs
}

// TestIgnoredRestartsOfASingleJobDoNotCount: a rule RestartJobAndIgnoreMaxRestarts recreates a failed Job as often as
// it fails, even with maxRestarts 0. The rule does not apply to other replicated jobs than its targets.
func TestIgnoredRestartsOfASingleJobDoNotCount(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(0,
		jobset.FailurePolicyRule{Action: jobset.RestartJobAndIgnoreMaxRestarts, TargetReplicatedJobs: []string{"workers"}})
	w.Create(js)
	created := w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	for attempt := int32(1); attempt <= 2; attempt++ {
		w.run("js-leader-0", "js-workers-0", "js-workers-1")
		w.fail(1, "js-workers-0")
		w.untilJobs(fmt.Sprintf("include js-workers-0 of attempt %d", attempt), func(jobs map[string]batchv1.Job) bool {
			return jobs["js-workers-0"].Labels[jobset.JobRestartAttemptKey] == string('0'+rune(attempt)) && len(jobs) == 3
		})
	}
	w.UntilEvent("js", jobset.RestartJobIgnoreMaxRestartsReason)
	js = w.untilJobSet("js", "has two restarts of js-workers-0", func(js *jobset.JobSet) bool {
		return len(js.Status.ReplicatedJobsStatus[0].JobRestarts) == 2 &&
			js.Status.ReplicatedJobsStatus[0].JobRestarts[0] == 2
	})
	if s := js.Status.ReplicatedJobsStatus[0]; s.JobRestarts[1] != 0 || js.Status.Restarts != 0 ||
		len(s.JobRestartsCountTowardsMax) > 0 && s.JobRestartsCountTowardsMax[0] != 0 {
		t.Errorf("status = %+v, want restarts of js-workers-0 only, none of which count", js.Status)
	}
	for name, job := range w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1") {
		if (job.UID == created[name].UID) == (name == "js-workers-0") {
			t.Errorf("%s: recreated: %v, want only js-workers-0", name, job.UID != created[name].UID)
		}
	}
	// The rule targets only the workers: with maxRestarts 0, a failure of the leader fails the JobSet.
	w.fail(1, "js-leader-0")
	w.untilJobSet("js", "is failed", is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.ReachedMaxRestartsReason))
}

// TestTheNetworkIsAsSpecified: a JobSet without DNS host names has no Service, and publishNotReadyAddresses is applied
// to the Service of the other.
func TestTheNetworkIsAsSpecified(t *testing.T) {
	w := newWorld(t)
	without, ready := w.named("without", w.replicated("r", 1, 1)), w.named("ready", w.replicated("r", 1, 1))
	without.Spec.Network = &jobset.Network{EnableDNSHostnames: ptr.To(false)}
	ready.Spec.Network = &jobset.Network{PublishNotReadyAddresses: ptr.To(false)}
	w.Create(without, ready)
	w.untilOnlyJobs("without-r-0", "ready-r-0")
	service := w.untilServices("ready is the only Service",
		func(s map[string]corev1.Service) bool { return len(s) == 1 && s["ready"].Name != "" })["ready"]
	if service.Spec.PublishNotReadyAddresses || service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("spec of the Service = %+v, want headless without addresses that are not ready", service.Spec)
	}
	if pod := w.podsOf("without-r-0")[0]; pod.Spec.Subdomain != "" {
		t.Errorf("subdomain = %q, want none", pod.Spec.Subdomain)
	}
}
