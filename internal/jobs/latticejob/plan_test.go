package latticejob

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

const submitting = "apply ServiceAccount job-t, apply TracingPolicyNamespaced allow-binaries-job-t / apply Job job"

func TestLifeOfAJob(t *testing.T) {
	const gone = "Its VCJob was deleted and is not recreated: to run the job again, delete the LatticeJob and create a new one"
	const changed = ". The spec was changed after that, to generation 2, and the change is ignored: it runs with generation 1"
	for name, test := range map[string]struct {
		scene          *scene
		phase          lattice.JobPhase
		message        string
		generation     int64
		writes, events string
	}{
		"it is new":                   {newScene(), "", "", 0, submitting, ""},
		"its VCJob was not looked at": {newScene().vcjob("", "", ""), "", "", 0, "", ""},
		"its VCJob waits for quota": {newScene().vcjob(volcano.Pending, volcano.WaitingForQuota,
			"2 cpu more"), lattice.Pending, "Waiting for quota: 2 cpu more", 0, "", ""},
		"its VCJob has no queue": {newScene().vcjob(volcano.Pending, volcano.QueueNotFound,
			"Queue q is none"), lattice.Pending, "Queue q is none", 0, "", ""},
		"its VCJob has no pods": {newScene().vcjob(volcano.Pending, volcano.NoPods,
			"No task has replicas"), lattice.Pending, "No task has replicas", 0, "", ""},
		"its VCJob cannot be queued": {newScene().vcjob(volcano.Pending, jobs.InvalidJob,
			"spec.networkTopology is hard"), lattice.Pending, "spec.networkTopology is hard", 0, "", ""},
		"Volcano runs it, and it cannot be queued": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).
			with(func(s *scene) { s.seen.Mistake = "no such class" }), lattice.Pending, "no such class", 0, "", ""},
		"its queue is gone": {newScene().stands(lattice.Running, "Job submitted to Volcano",
			1).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none"), lattice.Running, "Queue q is none", 1, "", ""},
		"it is given another queue": {newScene().stands(lattice.Pending, "Queue q is none",
			0).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none").generation(2), lattice.Pending,
			"Queue q is none", 0, "delete  job", ""},
		"it was renamed while it waits": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").generation(2).with(hasTasks("old")), lattice.Pending,
			"Waiting for quota", 0, "remove LatticeMeshMember job-old / delete  job", ""},
		"it is labelled otherwise while it waits": {newScene().stands(lattice.Pending, "Queue q is none",
			0).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none").with(labelled("q", "")), lattice.Pending,
			"Queue q is none", 0, "change  job", ""},
		"its label is taken away while it waits": {newScene().stands(lattice.Pending, "Queue q is none",
			0).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none").with(labelled("", "q")), lattice.Pending,
			"Queue q is none", 0, "change  job", ""},
		"its label was passed on": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(labelled("q", "q")), lattice.Pending,
			"Waiting for quota", 0, "", ""},
		"it is labelled otherwise while it runs": {newScene().stands(lattice.Running, "Job submitted to Volcano",
			1).vcjob(volcano.Running, "", "").with(labelled("q", "")), lattice.Running, "Job submitted to Volcano", 1,
			"change  job", ""},
		"it is labelled otherwise once it is evicted": {newScene().stands(lattice.Running, "Waiting for quota",
			1).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(labelled("q", "p")), lattice.Running,
			"Waiting for quota", 1, "change  job", ""},
		"it is labelled otherwise, and Volcano runs it": {newScene().external(admitted).stands(lattice.Running,
			"Job submitted to Volcano", 1).vcjob(volcano.Running, "", "").with(labelled("q", "")), lattice.Running,
			"Job submitted to Volcano", 1, "", ""},
		"it is labelled otherwise, and is over": {newScene().stands(lattice.Running, "Job submitted to Volcano",
			1).vcjob(volcano.Completed, "", "").with(labelled("q", "")), lattice.Succeeded, "All tasks completed successfully",
			1, "", "JobSucceeded"},
		"its VCJob has quota": {newScene().stands(lattice.Pending, "Waiting for quota: 2 cpu more",
			0).vcjob(volcano.Pending, "", ""), lattice.Running, "Job submitted to Volcano", 1, "", "JobSubmitted"},
		"it runs": {newScene().stands(lattice.Running, "Job submitted to Volcano",
			1).vcjob(volcano.Running, "", ""), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"the pods of its VCJob are refused": {newScene().vcjob(volcano.Pending, "ObjectsRefused",
			"Its pods cannot be created: exceeded quota"), lattice.Running,
			"Job submitted to Volcano. Its pods cannot be created: exceeded quota", 1, "", "JobSubmitted"},
		"they are refused no more": {newScene().stands(lattice.Running,
			"Job submitted to Volcano. Its pods cannot be created: exceeded quota", 1).vcjob(volcano.Running, "Running",
			"Enough pods run"), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"it runs, and is evicted": {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Pending,
			volcano.WaitingForQuota, "preempted"), lattice.Running, "Waiting for quota: preempted", 1, "", ""},
		"it has succeeded": {newScene().stands(lattice.Running, "Job submitted to Volcano",
			1).vcjob(volcano.Completed, "", ""), lattice.Succeeded, "All tasks completed successfully", 1, "", "JobSucceeded"},
		"it has succeeded at once": {newScene().vcjob(volcano.Completed, "", ""), lattice.Succeeded,
			"All tasks completed successfully", 1, "", "JobSucceeded"},
		"it has failed": {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Failed, "", ""), lattice.Failed,
			"Job failed", 1, "", "JobFailed"},
		"it was terminated": {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Terminated, "", ""), lattice.Failed,
			"Job failed", 1, "", "JobFailed"},
		"it was aborted": {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Aborted, "", ""), lattice.Failed,
			"Job failed", 1, "", "JobFailed"},
		"it restarts": {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Restarting, "", ""),
			lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"it restarts for ever": {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Restarting, "",
			"").with(func(s *scene) {
			s.seen.Children[0].(*volcano.Job).Spec.MaxRetry = 0
		}), lattice.Failed, "Job failed", 1, "", "JobFailed"},
		"its VCJob is gone while it runs": {newScene().stands(lattice.Running, "m", 1),
			lattice.Running, gone, 1, "", "VCJobGone"},
		"its VCJob is gone, and that was told": {newScene().stands(lattice.Running, gone, 1),
			lattice.Running, gone, 1, "", ""},
		"its VCJob is gone as it is itself": {newScene().stands(lattice.Running, "m", 1).with(goes),
			lattice.Running, "m", 1, "", ""},
		"its VCJob is gone with Volcano": {newScene().external(jobs.Admission{Grant: jobs.Unqueued}).
			stands(lattice.Running, "m", 1).with(withoutVolcano), lattice.Running, "m", 1, "", ""},
		"it asks for HyperNodes": {newScene().with(hard), lattice.Pending, hardTopology, 0,
			"", "InvalidJob"},
		"it asks Volcano for HyperNodes": {newScene().with(hard).
			external(jobs.Admission{Grant: jobs.Unqueued}), "", "", 0, submitting, ""},
		"its pods are to be elsewhere while it waits": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(hasTasks("t")).with(inOneRack), lattice.Pending,
			"Waiting for quota", 0, "remove LatticeMeshMember job-t / delete  job", ""},
		"its pods are to be elsewhere while it runs": {newScene().stands(lattice.Running,
			"Job submitted to Volcano", 1).vcjob(volcano.Running, "", "").with(hasTasks("t")).with(inOneRack), lattice.Running,
			"Job submitted to Volcano", 1, "", ""},
		"it was changed while it runs": {newScene().stands(lattice.Running,
			"Job submitted to Volcano", 1).vcjob(volcano.Running, "", "").generation(2), lattice.Running,
			"Job submitted to Volcano" + changed, 1, "", "SpecChangeIgnored"},
		"it was changed, and that was told": {newScene().stands(lattice.Running,
			"Job submitted to Volcano"+changed, 1).vcjob(volcano.Running, "", "").generation(2), lattice.Running,
			"Job submitted to Volcano" + changed, 1, "", ""},
		"it was changed, and has succeeded": {newScene().stands(lattice.Running,
			"Job submitted to Volcano"+changed, 1).vcjob(volcano.Completed, "", "").generation(2), lattice.Succeeded,
			"All tasks completed successfully", 2, "", "JobSucceeded"},
		"it was changed while it waits for quota": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").generation(2), lattice.Pending, "Waiting for quota", 0,
			"delete  job", ""},
		"it was changed between quota and Running": {newScene().stands(lattice.Pending, "",
			0).vcjob(volcano.Pending, "", "").generation(2), lattice.Running, "Job submitted to Volcano" + changed, 1, "",
			"JobSubmitted, SpecChangeIgnored"},
		"it is over, and was changed": {newScene().stands(lattice.Failed, "Job failed",
			1).vcjob(volcano.Running, "", "").generation(2), lattice.Failed, "Job failed", 1, "", ""},
		"its last VCJob is going": {newScene().stands(lattice.Pending, "",
			0).vcjob(volcano.Pending, "", "").with(vcjobGoes), lattice.Pending, "", 0, "", ""},
		"it cannot be compiled": {newScene().with(func(s *scene) {
			s.seen.Job.Spec.Tasks = nil
		}), lattice.Failed, "Failed to compile job: job has no tasks", 1, "remove all LatticeMeshMember ", "CompileFailed"},
		"it cannot be compiled, and there is no mesh": {newScene().with(func(s *scene) {
			s.seen.Job.Spec.Tasks, s.seen.Facts.Served = nil, nil
		}), lattice.Failed, "Failed to compile job: job has no tasks", 1, "", "CompileFailed"},
		"it needs a kind that is not served": {newScene().with(needSecret), lattice.Pending,
			"The cluster does not serve ExternalSecret (external-secrets.io), which the job needs: it continues once that is installed", 0, "", "MissingKind"},
		"the kind that it needs has come": {newScene().with(needSecret).with(func(s *scene) {
			s.seen.Facts.Served[compile.ExternalSecrets] = true
		}), "", "", 0, "apply ExternalSecret job-t-s, apply ServiceAccount job-t, apply TracingPolicyNamespaced allow-binaries-job-t / apply Job job", ""},
		"it does without a kind": {newScene().with(func(s *scene) {
			s.seen.Facts.Served = nil
		}), "", "", 0, "apply ServiceAccount job-t / apply Job job", "KindSkipped"},
		"configuration demands the kind": {newScene().with(func(s *scene) {
			s.seen.Facts.Served, s.settings.NeedTracing = nil, true
		}), lattice.Pending, "The cluster does not serve TracingPolicyNamespaced (cilium.io), which the job needs: it continues once that is installed",
			0, "", "MissingKind"},
		"params mean nothing": {newScene().
			with(func(s *scene) { resource(s, lattice.VolumeResource, `{"sise": 1}`) }), "", "", 0, submitting, "IgnoredInSpec"},
		"it calls a service that is not there, yet": {newScene().with(callService).with(func(s *scene) {
			s.seen.Job.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
		}), lattice.Pending, "Compile failed (will retry): compilation failed for task 't': resource 's': service 'ns/other-x' does not exist", 0, "", ""},
		"it calls a service that is not there": {newScene().with(callService), lattice.Failed,
			"Failed to compile job: compilation failed for task 't': resource 's': service 'ns/other-x' does not exist", 1,
			"remove all LatticeMeshMember ", "CompileFailed"},
		"it calls a Service": {newScene().with(callService).with(
			thereIs(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other-x"}})), "", "", 0, withMesh, ""},
		"it calls a task of another job": {newScene().with(callService).
			with(thereIs(otherJob(lattice.Running))), "", "", 0, withMesh, ""},
		"it calls a task of a job that is over": {newScene().with(callService).
			with(thereIs(otherJob(lattice.Succeeded))), lattice.Failed,
			"Failed to compile job: compilation failed for task 't': resource 's': service 'ns/other-x' does not exist", 1,
			"remove all LatticeMeshMember ", "CompileFailed"},
		"it is over, and leaves the graph": {
			newScene().with(callService).with(thereIs(otherJob(lattice.Running))).stands(lattice.Running, "",
				1).vcjob(volcano.Completed, "", "").with(hasTasks("t")), lattice.Succeeded, "All tasks completed successfully", 1,
			"remove LatticeMeshMember job-t", "JobSucceeded"},
		"it is over, as is whom it called": {newScene().with(callService).stands(lattice.Running, "",
			1).vcjob(volcano.Completed, "", "").with(hasTasks("t")), lattice.Succeeded, "All tasks completed successfully", 1,
			"remove LatticeMeshMember job-t", "JobSucceeded"},
		"it is over, and its tasks were renamed": {newScene().stands(lattice.Running, "",
			1).vcjob(volcano.Failed, "", "").with(hasTasks("old", "t")), lattice.Failed, "Job failed", 1,
			"remove LatticeMeshMember job-old, remove LatticeMeshMember job-t", "JobFailed"},
		"it is over, and there is no mesh": {
			newScene().with(func(s *scene) { s.seen.Facts.Served = nil }).stands(lattice.Running, "", 1).vcjob(volcano.Completed,
				"", "").with(hasTasks("t")), lattice.Succeeded, "All tasks completed successfully", 1, "", "JobSucceeded"},
		"Volcano runs it, in a queue of its own": {newScene().external(jobs.Admission{Grant: jobs.Unqueued}).
			vcjob(volcano.Pending, "", ""), lattice.Running,
			"Job submitted to Volcano. Its queue is not managed by Muster, so Muster's quota does not cover it", 1, "", "JobSubmitted"},
		"Volcano is to run it, and is not there": {newScene().external(jobs.Admission{Grant: jobs.Unqueued}).
			with(withoutVolcano), lattice.Pending,
			"The cluster does not serve Job (batch.volcano.sh), which the job needs: it continues once that is installed", 0, "", "MissingKind"},
		"Volcano runs it, when it is admitted": {newScene().external(jobs.Admission{Grant: jobs.Waiting,
			Why: "2 cpu more"}), lattice.Pending, "Waiting for quota: 2 cpu more", 0, "", ""},
		"Volcano is to run it, and it queued as its VCJob before": {
			newScene().external(jobs.Admission{Grant: jobs.Waiting, Why: "2 cpu more"}).stands(lattice.Pending,
				"Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(hasTasks("t")), lattice.Pending,
			"Waiting for quota: 2 cpu more", 0, "remove LatticeMeshMember job-t / delete  job", ""},
		"Volcano is to run it, and it has begun unqueued": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).
			stands(lattice.Pending, "", 0).vcjob(volcano.Running, "", ""), lattice.Running,
			"Job submitted to Volcano. It waits for Muster's quota, which does not cover it yet", 1, "", "JobSubmitted"},
		"Volcano is to run it, and it is over already": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).
			stands(lattice.Pending, "", 0).vcjob(volcano.Completed, "", ""), lattice.Succeeded,
			"All tasks completed successfully", 1, "", "JobSucceeded"},
		"Volcano is to run it, and it ran before": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).
			stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Running, "", ""), lattice.Running,
			"Job submitted to Volcano. It waits for Muster's quota, which does not cover it yet", 1, "", ""},
		"Volcano is to run it, and it ran before its pods do": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).
			stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Pending, "", ""), lattice.Running,
			"Job submitted to Volcano. It waits for Muster's quota, which does not cover it yet", 1, "", ""},
		"Volcano is to run it, and a pod of it has failed": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).
			stands(lattice.Pending, "", 0).vcjob(volcano.Pending, "", "").with(func(s *scene) {
			s.seen.Children[0].(*volcano.Job).Status.Failed = 1
		}), lattice.Running, "Job submitted to Volcano. It waits for Muster's quota, which does not cover it yet", 1,
			"", "JobSubmitted"},
		"Volcano runs it, and Muster told before why it waited": {newScene().external(admitted).vcjob(volcano.Pending,
			volcano.WaitingForQuota, "2 cpu more"), lattice.Running, "Job submitted to Volcano", 1, "", "JobSubmitted"},
		"Volcano runs it, and Muster told before of no queue": {newScene().external(admitted).vcjob(volcano.Pending,
			volcano.QueueNotFound, "Queue q is none"), lattice.Running, "Job submitted to Volcano", 1, "", "JobSubmitted"},
		"Volcano runs it, and has not looked at it": {newScene().external(admitted).vcjob("", "", ""), lattice.Running,
			"Job submitted to Volcano", 1, "", "JobSubmitted"},
		"Volcano ran it, and its VCJob waits for quota": {newScene().vcjob(volcano.Pending, volcano.WaitingForQuota,
			"2 cpu more").with(func(s *scene) {
			s.seen.Admission.Grant = jobs.Waiting
		}), lattice.Pending, "Waiting for quota: 2 cpu more", 0, "", ""},
		"Volcano ran it, and its VCJob runs": {newScene().stands(lattice.Running, "Job submitted to Volcano",
			1).vcjob(volcano.Running, "", "").with(func(s *scene) {
			s.seen.Admission.Grant = jobs.Waiting
		}), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"Volcano runs it, and its queue said naught": {newScene().external(jobs.Admission{Grant: jobs.Waiting}),
			lattice.Pending, "Waiting for quota", 0, "", ""},
		"Volcano runs it, for it was admitted": {newScene().external(admitted).vcjob(volcano.Pending, "",
			""), lattice.Running, "Job submitted to Volcano", 1, "", "JobSubmitted"},
		"Volcano runs it, and it is evicted": {newScene().external(jobs.Admission{Grant: jobs.Stopping}).
			stands(lattice.Running, "", 1).vcjob(volcano.Running, "", ""), lattice.Pending,
			"Evicted: its pods are stopped, and it waits for quota again", 0, "delete  job", "Evicted"},
		"Volcano runs it, and it leaves the graph with its quota": {
			newScene().external(jobs.Admission{Grant: jobs.Stopping}).stands(lattice.Running, "", 1).vcjob(volcano.Running, "",
				"").with(hasTasks("t")), lattice.Pending, "Evicted: its pods are stopped, and it waits for quota again", 0,
			"remove LatticeMeshMember job-t / delete  job", "Evicted"},
		"Volcano runs it, and it loses its quota before it runs": {newScene().external(jobs.Admission{Grant: jobs.Stopping}).
			stands(lattice.Pending, "Waiting for quota", 0), lattice.Pending, "Waiting for quota", 0, "", ""},
		"Volcano ran it, its VCJob is gone, and it is evicted": {newScene().external(jobs.Admission{Grant: jobs.Stopping}).
			stands(lattice.Running, "", 1), lattice.Running, gone, 1, "", "VCJobGone"},
		"Volcano ran it, its VCJob is gone, as is Volcano": {newScene().external(jobs.Admission{Grant: jobs.Stopping}).
			stands(lattice.Running, "", 1).with(withoutVolcano), lattice.Pending,
			"Evicted: its pods are stopped, and it waits for quota again", 0, "", "Evicted"},
		"it runs, and somebody has its VCJob go": {newScene().stands(lattice.Running, "m",
			1).vcjob(volcano.Running, "", "").with(vcjobGoes), lattice.Running, "m", 1, "", ""},
		"a policy of the cluster says where its pods are to be": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(hasTasks("t")).with(policyOfRacks), lattice.Pending,
			"Waiting for quota", 0, "", ""},
		"and the job says it otherwise": {
			newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota,
				"").with(hasTasks("t")).with(policyOfRacks).with(inOneRack).
				with(madeFor("kueue.x-k8s.io/podset-required-topology=rack")), lattice.Pending, "Waiting for quota", 0, "", ""},
		"its VCJob does not say where its pods are to be": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(hasTasks("t")).with(madeByEarlierVersion),
			lattice.Pending, "Waiting for quota", 0, "change  job", ""},
		"it says no more where its pods are to be while it waits": {newScene().stands(lattice.Pending, "Waiting for quota",
			0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(hasTasks("t")).
			with(madeFor("kueue.x-k8s.io/podset-required-topology=rack")), lattice.Pending, "Waiting for quota", 0,
			"remove LatticeMeshMember job-t / delete  job", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := test.scene.plan(t)
			got := plan.Status.(*lattice.LatticeJob).Status
			want := lattice.LatticeJobStatus{Phase: test.phase, Message: test.message}
			if test.generation > 0 {
				want.ObservedGeneration = &test.generation
			}
			got.StartTime, got.CompletionTime = nil, nil // of TestTimesOfAJob
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got := writes(plan); got != test.writes {
				t.Errorf("writes\n%s, want\n%s", got, test.writes)
			}
			if got := events(plan); got != test.events {
				t.Errorf("events %q, want %q", got, test.events)
			}
		})
	}
}

// TestObjectsOfARunningJobComeBack: while pods that ran before are started again, missing objects are created.
func TestObjectsOfARunningJobComeBack(t *testing.T) {
	const created = "create ServiceAccount job-t, create TracingPolicyNamespaced allow-binaries-job-t"
	runs := func(phase volcano.JobPhase, status volcano.JobStatus) *scene {
		s := newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(phase, "", "")
		vcjob := s.seen.Children[0].(*volcano.Job)
		status.State = vcjob.Status.State
		vcjob.Status = status
		return s
	}
	withVariable := func(s *scene) {
		task := s.seen.Job.Spec.Tasks["t"]
		c := task.Workload.Containers["main"]
		c.Variables = map[string]string{"A": "one"}
		task.Workload.Containers["main"] = c
	}
	for name, test := range map[string]struct {
		scene  *scene
		writes string
	}{
		"its first pods start":         {runs(volcano.Pending, volcano.JobStatus{Pending: 2}), ""},
		"all of them run":              {runs(volcano.Running, volcano.JobStatus{Running: 2}), ""},
		"one of them is started again": {runs(volcano.Running, volcano.JobStatus{Running: 1, Pending: 1}), created},
		"with variables": {runs(volcano.Running,
			volcano.JobStatus{Running: 1, Pending: 1}).with(withVariable), "create ConfigMap job-t-main-env, " + created},
		"it restarts":                    {runs(volcano.Restarting, volcano.JobStatus{RetryCount: 1}), created},
		"its pods start after a restart": {runs(volcano.Pending, volcano.JobStatus{RetryCount: 1, Pending: 2}), created},
		"Volcano runs it": {runs(volcano.Running,
			volcano.JobStatus{Running: 1, Pending: 1}).external(admitted), created},
		"Volcano runs it, without quota": {runs(volcano.Running,
			volcano.JobStatus{Running: 1, Pending: 1}).external(jobs.Admission{Grant: jobs.Waiting}), ""},
		"its spec was changed while it ran": {runs(volcano.Running,
			volcano.JobStatus{Running: 1, Pending: 1}).generation(2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := test.scene.plan(t)
			if got := strings.TrimSuffix(writes(plan), " / "); got != test.writes {
				t.Errorf("writes %q, want %q", got, test.writes)
			}
			if due := !plan.Due.IsZero(); due != (test.writes != "") {
				t.Errorf("due %v, want it to look again only while it restores", plan.Due)
			}
		})
	}
}

func TestTimesOfAJob(t *testing.T) {
	began, since := metav1.NewTime(now.Add(-time.Hour)), func(s *scene) {
		s.seen.Job.Status.StartTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
	}
	at := metav1.NewTime(now)
	for name, test := range map[string]struct {
		scene      *scene
		start, end *metav1.Time
	}{
		"it waits":         {newScene().vcjob(volcano.Pending, volcano.WaitingForQuota, ""), nil, nil},
		"it begins to run": {newScene().stands(lattice.Pending, "", 0).vcjob(volcano.Pending, "", ""), &at, nil},
		"it runs": {newScene().stands(lattice.Running, "", 1).with(since).vcjob(volcano.Running, "",
			""), &began, nil},
		"it is changed": {newScene().stands(lattice.Running, "", 1).with(since).vcjob(volcano.Running, "",
			"").generation(2), &began, nil},
		"it began before this": {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Running, "", ""), nil, nil},
		"it has succeeded": {newScene().stands(lattice.Running, "", 1).with(since).vcjob(volcano.Completed, "",
			""), &began, &at},
		"it has failed": {newScene().stands(lattice.Running, "", 1).with(since).vcjob(volcano.Failed, "",
			""), &began, &at},
		"it cannot be compiled": {newScene().with(func(s *scene) { s.seen.Job.Spec.Tasks = nil }), nil, &at},
		"its VCJob is gone":     {newScene().stands(lattice.Running, "", 1).with(since), &began, nil},
		"Volcano's is evicted": {newScene().external(jobs.Admission{Grant: jobs.Stopping}).stands(lattice.Running, "",
			1).with(since).vcjob(volcano.Running, "", ""), nil, nil},
		"its schedule begins":    {scheduled().stands("", "", 0), ptr.To(metav1.NewTime(now.Add(2 * time.Minute))), nil},
		"its schedule continues": {scheduled().with(since), &began, nil},
	} {
		status := test.scene.plan(t).Status.(*lattice.LatticeJob).Status
		if !status.StartTime.Equal(test.start) || !status.CompletionTime.Equal(test.end) {
			t.Errorf("%s: started %v and ended %v, want %v and %v", name, status.StartTime, status.CompletionTime,
				test.start, test.end)
		}
	}
}

// TestARemovedDomainReplacesTheVCJob, though the VCJob was made before it was written down which it asks for.
func TestARemovedDomainReplacesTheVCJob(t *testing.T) {
	s := newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota,
		"").with(hasTasks("t")).with(inOneRack).with(madeByEarlierVersion)
	metav1.SetMetaDataAnnotation(&s.seen.Children[0].(*volcano.Job).Spec.Tasks[0].Template.ObjectMeta,
		kueue.PodSetRequiredTopologyAnnotation, "rack")
	plan := s.plan(t)
	if writes(plan) != "change  job" {
		t.Fatalf("it writes %s", writes(plan))
	}
	s.seen.Children[0] = plan.Writes[0].Object()
	s.seen.Job.Annotations = nil
	if got := writes(s.plan(t)); got != "remove LatticeMeshMember job-t / delete  job" {
		t.Errorf("the domain is taken away, and it writes %s", got)
	}
}

// TestAJobWhoseObjectsAreRefusedGivesItsQuotaBack: as where Volcano does not know its queue. It is not made at the same
// time. What passes by itself is no reason, nor is the time in which nobody tried.
func TestAJobWhoseObjectsAreRefusedGivesItsQuotaBack(t *testing.T) {
	var (
		noQueue = apierrors.NewBadRequest("no such queue")
		noTime  = apierrors.NewTimeoutError("no answer", 1)
		these   = func(errs ...error) []error { return errs }
	)
	for name, test := range map[string]struct {
		// tries are how they failed, one each ten seconds; the job was admitted a minute before the first.
		tries   []error
		refused string
	}{
		"it is tried for the first time":            {nil, ""},
		"it was refused once, long after admission": {these(noQueue), ""},
		"it is refused and refused":                 {these(noQueue, noQueue), "no such queue"},
		"nobody answers":                            {these(noTime, noTime, noTime), ""},
		"nobody answers, and then it is refused":    {these(noTime, noTime, noQueue), ""},
		"it is refused, and then nobody answers":    {these(noQueue, noTime), ""},
	} {
		t.Run(name, func(t *testing.T) {
			admission := admitted
			admission.UnreadySince = now.Add(-time.Minute)
			s := newScene().external(admission).stands(lattice.Pending, "Waiting for quota", 0)
			for _, err := range test.tries {
				status, _ := s.plan(t).StatusOnError(err)
				s.seen.Job.Status = status.(*lattice.LatticeJob).Status
				s.seen.Now = s.seen.Now.Add(10 * time.Second)
			}
			plan := s.plan(t)
			if plan.Progress.Refused != test.refused || (len(plan.Writes)+len(plan.First) > 0) != (test.refused == "") {
				t.Errorf("refused: %q; it writes %s", plan.Progress.Refused, writes(plan))
			}
			if said := plan.Status.(*lattice.LatticeJob).Status.Message; said != s.seen.Job.Status.Message {
				t.Errorf("it says %q", said)
			}
			s.seen.Admission.UnreadySince = s.seen.Now
			if plan := s.plan(t); plan.Progress.Refused != "" {
				t.Errorf("it is admitted again, and not tried: %s", plan.Progress.Refused)
			}
		})
	}
}

// TestTheRunningPhaseIsWrittenOnABusyServer: a VCJob that is deleted then is not made anew.
func TestTheRunningPhaseIsWrittenOnABusyServer(t *testing.T) {
	for phase, yields := range map[volcano.JobPhase]bool{"": true, volcano.Pending: true, volcano.Running: false,
		volcano.Restarting: false} {
		if got := newScene().stands("", "", 0).vcjob(phase, "", "").plan(t); got.StatusYields != yields {
			t.Errorf("its VCJob is %q: its status yields: %v", phase, got.StatusYields)
		}
	}
	if !newScene().plan(t).StatusYields {
		t.Error("before there is a VCJob its status does not yield")
	}
}

const withMesh = "apply LatticeMeshMember job-t, apply ServiceAccount job-t, apply TracingPolicyNamespaced allow-binaries-job-t / apply Job job"

// TestRefusedWritesAreReportedAndRetried: since when they are matters only to a job that holds quota.
func TestRefusedWritesAreReportedAndRetried(t *testing.T) {
	plan := newScene().plan(t)
	refused, _ := plan.StatusOnError(apierrors.NewBadRequest("no such queue"))
	if said := refused.(*lattice.LatticeJob).Status.Message; said != "Apply failed (will retry): no such queue" {
		t.Errorf("without quota it says %q", said)
	}
	status, event := plan.StatusOnError(errors.New("apply Job ns/job: no"))
	want := lattice.LatticeJobStatus{Phase: lattice.Pending, Message: "Apply failed (will retry): apply Job ns/job: no"}
	if diff := cmp.Diff(want, status.(*lattice.LatticeJob).Status); diff != "" {
		t.Error(diff)
	}
	if event.Reason != applyFailedReason || event.Type != corev1.EventTypeWarning {
		t.Errorf("event %+v", event)
	}
}

// The end is told when nothing of the job is left in the graph: nobody looks at it after that.
func TestAJobHasNotEndedWhileItCannotLeaveTheGraph(t *testing.T) {
	for _, before := range []lattice.JobPhase{"", lattice.Pending, lattice.Running} {
		plan := newScene().stands(before, "m", 1).vcjob(volcano.Completed, "", "").with(hasTasks("t")).plan(t)
		if plan.StatusFirst || plan.StatusOnError == nil {
			t.Fatal("the end is told whether the edges are gone or not")
		}
		status, event := plan.StatusOnError(errors.New("remove LatticeMeshMember ns/job-t: no"))
		got := status.(*lattice.LatticeJob).Status
		if hasOutcome(status.(*lattice.LatticeJob)) || got.Phase == "" ||
			got.Message != "Leaving the service graph failed (will retry): remove LatticeMeshMember ns/job-t: no" {
			t.Errorf("from %q: %+v", before, got)
		}
		if event.Type != corev1.EventTypeWarning {
			t.Errorf("event %+v", event)
		}
	}
}
