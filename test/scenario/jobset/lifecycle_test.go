package jobset

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestStatusThroughoutTheLifecycle: the status counts active, ready and succeeded Jobs, a completed JobSet has its
// terminal state and event, and a TTL of zero deletes it at once. Pods have the coordinator and the other documented
// labels.
func TestStatusThroughoutTheLifecycle(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	js.Finalizers = []string{"example.com/inspect"} // keeps the deleted JobSet readable
	js.Spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: jobset.OperatorAll, TargetReplicatedJobs: []string{"leader"}}
	js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "leader"}
	w.Create(js)
	w.untilJobSet("js", "has active Jobs", func(js *jobset.JobSet) bool {
		return counts("leader", 0, 0, 0, 1, 0)(js) && counts("workers", 0, 0, 0, 2, 0)(js)
	})
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilJobSet("js", "has ready Jobs", func(js *jobset.JobSet) bool {
		return counts("leader", 1, 0, 0, 1, 0)(js) && counts("workers", 2, 0, 0, 2, 0)(js)
	})
	for _, pod := range w.podsOf("js-workers-1") {
		if pod.Labels[jobset.CoordinatorKey] != "js-leader-0-0.js" ||
			pod.Annotations[jobset.CoordinatorKey] != "js-leader-0-0.js" ||
			pod.Labels[jobset.PriorityKey] != "0" || pod.Labels[jobset.JobGlobalIndexKey] != "2" {
			t.Errorf("pod %s has labels %v and annotations %v, want coordinator js-leader-0-0.js, priority 0 and global Job index 2",
				pod.Name, pod.Labels, pod.Annotations)
		}
	}
	w.succeed("js-leader-0")
	done := w.untilJobSet("js", "is completed and deleted", func(js *jobset.JobSet) bool {
		return is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason)(js) &&
			!js.DeletionTimestamp.IsZero()
	})
	if done.Status.TerminalState != "Completed" || !counts("leader", 0, 1, 0, 0, 0)(done) {
		t.Errorf("status = %+v, want Completed with one succeeded leader", done.Status)
	}
	if e := w.UntilEvent("js", jobset.AllJobsCompletedReason); e.Note != jobset.AllJobsCompletedMessage ||
		e.Type != corev1.EventTypeNormal {
		t.Errorf("event = %+v, want a normal event with the note %q", e, jobset.AllJobsCompletedMessage)
	}
	w.Patch(w.set(), `{"metadata": {"finalizers": null}}`)
}

// TestAGeneratedNameIsUsedForAllObjects: Jobs, the Service and the pods' subdomain are named after the generated name.
func TestAGeneratedNameIsUsedForAllObjects(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Name, js.GenerateName = "", "run-"
	w.Create(js)
	if !strings.HasPrefix(js.Name, "run-") {
		t.Fatalf("name = %q, want the prefix run-", js.Name)
	}
	w.untilOnlyJobs(js.Name+"-leader-0", js.Name+"-workers-0", js.Name+"-workers-1")
	w.untilServices("Service "+js.Name+" exists", func(s map[string]corev1.Service) bool { return s[js.Name].Name != "" })
	if pod := w.podsOf(js.Name + "-leader-0")[0]; pod.Spec.Subdomain != js.Name {
		t.Errorf("subdomain = %q, want %q", pod.Spec.Subdomain, js.Name)
	}
}

// TestDependentJobsAreCreatedWhenTheirDependenciesAreReady: the Jobs of a replicated job are created when all that it
// depends on are ready or, if it says so, complete.
func TestDependentJobsAreCreatedWhenTheirDependenciesAreReady(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, w.replicated("report", 1, 1))
	js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "leader", Status: jobset.DependencyReady}}
	js.Spec.ReplicatedJobs[2].DependsOn = []jobset.DependsOn{{Name: "leader", Status: jobset.DependencyReady},
		{Name: "workers", Status: jobset.DependencyComplete}}
	w.Create(js)
	w.untilOnlyJobs("js-leader-0")
	w.run("js-leader-0")
	w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.succeed("js-workers-0")
	w.untilJobSet("js", "has one succeeded worker Job", counts("workers", 0, 1, 0, 1, 0))
	w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.succeed("js-workers-1")
	w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1", "js-report-0")
}

// TestJobsStartInOrder: with the startup policy InOrder, the Jobs of a replicated job are created when those before are
// ready, and the conditions report the progress.
func TestJobsStartInOrder(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.StartupPolicy = &jobset.StartupPolicy{StartupPolicyOrder: jobset.InOrder}
	w.Create(js)
	w.untilOnlyJobs("js-leader-0")
	w.untilJobSet("js", "is starting in order",
		is(jobset.JobSetStartupPolicyInProgress, metav1.ConditionTrue, jobset.InOrderStartupPolicyInProgressReason))
	w.run("js-leader-0")
	w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.run("js-workers-0", "js-workers-1")
	w.untilJobSet("js", "has started in order", func(js *jobset.JobSet) bool {
		return is(jobset.JobSetStartupPolicyCompleted, metav1.ConditionTrue,
			jobset.InOrderStartupPolicyCompletedReason)(js) &&
			is(jobset.JobSetStartupPolicyInProgress, metav1.ConditionFalse, jobset.InOrderStartupPolicyInProgressReason)(js)
	})
}

// TestAJobSetManagedByAnotherControllerIsLeftAlone: a JobSet with another managedBy gets neither Jobs nor a status,
// while one created after it runs.
func TestAJobSetManagedByAnotherControllerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	foreign := w.named("foreign", w.replicated("r", 1, 1))
	foreign.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue")
	ours := w.set()
	ours.Spec.ManagedBy = ptr.To(jobset.JobSetControllerName)
	w.Create(foreign, ours)
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilJobSet("js", "is ready", counts("workers", 2, 0, 0, 2, 0))
	w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	if w.Get(foreign); len(foreign.Status.ReplicatedJobsStatus) != 0 {
		t.Errorf("status of the foreign JobSet = %+v, want none", foreign.Status)
	}
}

// TestAJobThatTheAPIRejectsIsReported: if the API server rejects a Job, a warning event has its message.
func TestAJobThatTheAPIRejectsIsReported(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.ReplicatedJobs[1].Template.Spec.BackoffLimitPerIndex = ptr.To[int32](1)
	js.Spec.ReplicatedJobs[1].Template.Spec.PodReplacementPolicy = ptr.To(batchv1.PodReplacementPolicy("Never"))
	w.Create(js)
	if e := w.UntilEvent("js", jobset.JobCreationFailedReason); e.Type != corev1.EventTypeWarning ||
		!strings.Contains(e.Note, "podReplacementPolicy") || len(e.Note) > 1024 {
		t.Errorf("event = %+v, want a warning about podReplacementPolicy of at most 1024 bytes", e)
	}
}
