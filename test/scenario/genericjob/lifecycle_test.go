package genericjob

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestRestartBudget: under each restart policy a replica is restarted, under the same pod name, as often as the limit
// allows. The status counts the restarts and has the last exit code.
func TestRestartBudget(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name   string
		policy tensorstack.RestartPolicy
		codes  []int // exit codes of worker-0, one per attempt
		want   tensorstack.JobPhase
	}{
		{"never", tensorstack.RestartPolicy{Policy: tensorstack.RestartNever, Limit: 3}, []int{1},
			tensorstack.JobPhaseFailed},
		{"default", tensorstack.RestartPolicy{}, []int{1}, tensorstack.JobPhaseFailed},
		{"onfailure", tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 2}, []int{1, 2, 0},
			tensorstack.JobPhaseSucceeded},
		{"spent", tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 2}, []int{1, 2, 3},
			tensorstack.JobPhaseFailed},
		{"always", tensorstack.RestartPolicy{Policy: tensorstack.RestartAlways, Limit: 2}, []int{0, 1, 0},
			tensorstack.JobPhaseSucceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := &world{w.In(t)}
			w.Create(w.job(test.name, withPolicy("worker", 2, test.policy),
				func(job *tensorstack.GenericJob) { job.Spec.SuccessRules = rules("worker 0") }))
			w.untilPhase(test.name, tensorstack.JobPhaseRunning)
			for attempt, code := range test.codes {
				w.EndReplica(test.name+"-worker-0", attempt, code)
			}
			job := w.untilPhase(test.name, test.want)
			task := job.Status.Tasks[0]
			if want := int32(len(test.codes) - 1); task.RestartCount != want || task.Replicas[0].RestartCount != want ||
				task.Replicas[1].RestartCount != 0 {
				t.Errorf("task status = %+v, want %d restarts, all of worker-0", task, want)
			}
			last := task.Replicas[0].Containers
			if len(last) != 1 || last[0].ExitCode == nil || int(*last[0].ExitCode) != test.codes[len(test.codes)-1] ||
				last[0].State != tensorstack.ContainerTerminated {
				t.Errorf("containers of worker-0 = %+v, want one that terminated with exit code %d", last,
					test.codes[len(test.codes)-1])
			}
		})
	}
}

// TestEachReplicaHasABudgetOfItsOwn: the restarts of one replica do not reduce the budget of another, the status has
// their sum, and a failure rule counts a replica only when it has failed with its budget exhausted.
func TestEachReplicaHasABudgetOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("each", with("worker", 3, 1), func(job *tensorstack.GenericJob) {
		job.Spec.SuccessRules, job.Spec.FailureRules = rules("worker 1"), rules("worker 0+1")
	}))
	w.untilPhase("each", tensorstack.JobPhaseRunning)
	for _, pod := range []string{"each-worker-0", "each-worker-1", "each-worker-2"} {
		w.EndReplica(pod, 0, 1)
	}
	w.untilJob("each", "has restarted each replica once",
		func(job *tensorstack.GenericJob) bool { return job.Status.Tasks[0].RestartCount == 3 })
	w.EndReplica("each-worker-0", 1, 2)
	w.EndReplica("each-worker-2", 1, 0)
	seen := w.untilJob("each", "reports one failed and one succeeded replica", func(job *tensorstack.GenericJob) bool {
		return job.Status.Aggregate.Failed == 1 && job.Status.Aggregate.Succeeded == 1
	})
	if condition(seen, tensorstack.JobCompleted).Status == "True" {
		t.Errorf("conditions = %+v, want a running job: only one of the two replicas in the failure rule has failed", seen.Status.Conditions)
	}
	w.EndReplica("each-worker-1", 1, 3)
	job := w.untilPhase("each", tensorstack.JobPhaseFailed)
	if got := condition(job, tensorstack.JobFailed).Message; got != `The job is failed with rule: {"worker":["0","1"]}` {
		t.Errorf("message of the condition Failed = %q, want failure rule {\"worker\":[\"0\",\"1\"]}", got)
	}
	for i, r := range job.Status.Tasks[0].Replicas {
		if r.RestartCount != 1 {
			t.Errorf("restartCount of worker-%d = %d, want 1", i, r.RestartCount)
		}
	}
}

// TestARestartedReplicaIsReported: the condition ReplicaFailure names the failed pod and its exit code until all pods
// run again. Only the failed pod is recreated.
func TestARestartedReplicaIsReported(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("failing", with("worker", 2, 1)))
	w.untilPhase("failing", tensorstack.JobPhaseRunning)
	before := w.uids()
	w.EndReplica("failing-worker-1", 0, 137)
	w.untilJob("failing", "reports the failure", func(job *tensorstack.GenericJob) bool {
		c := condition(job, tensorstack.JobReplicaFailure)
		return c.Status == "True" && c.Reason == "ErrorInPod" &&
			c.Message == "Pod[failing-worker-1] exited with error code 137"
	})
	w.untilJob("failing", "reports that all pods run again", func(job *tensorstack.GenericJob) bool {
		c := condition(job, tensorstack.JobReplicaFailure)
		return c.Status == "False" && c.Message == "All pods are running normally." && job.Status.Tasks[0].RestartCount == 1
	})
	after := w.uids()
	if before["failing-worker-0"] != after["failing-worker-0"] || before["failing-worker-1"] == after["failing-worker-1"] {
		t.Errorf("UIDs before = %v, after = %v: want a new failing-worker-1 only", before, after)
	}
}

// TestADeletedPodIsRecreated: a pod deleted by a user is recreated under its name, and this does not count as a
// restart.
func TestADeletedPodIsRecreated(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("lost", with("worker", 1, 0)))
	w.untilPhase("lost", tensorstack.JobPhaseRunning)
	before := w.uids()["lost-worker-0"]
	w.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lost-worker-0", Namespace: w.Namespace}})
	w.UntilPods("lost-worker-0 is recreated", func(pods map[string]corev1.Pod) bool {
		pod, ok := pods["lost-worker-0"]
		return ok && pod.UID != before
	})
	w.EndReplica("lost-worker-0", 0, 0)
	if job := w.untilPhase("lost", tensorstack.JobPhaseSucceeded); job.Status.Tasks[0].RestartCount != 0 {
		t.Errorf("restartCount = %d, want 0", job.Status.Tasks[0].RestartCount)
	}
}

// TestCleanUp: when a job of four replicas ends, because its first has succeeded or failed after its second failed, the
// clean-up policy decides which pods remain. The status counts the deleted ones.
func TestCleanUp(t *testing.T) {
	for policy, left := range map[tensorstack.CleanUpPolicy][]string{
		tensorstack.CleanUpNone:       {"clean-worker-0", "clean-worker-1", "clean-worker-2", "clean-worker-3"},
		tensorstack.CleanUpUnfinished: {"clean-worker-0", "clean-worker-1"},
		tensorstack.CleanUpAll:        nil,
	} {
		for phase, code := range map[tensorstack.JobPhase]int{tensorstack.JobPhaseSucceeded: 0,
			tensorstack.JobPhaseFailed: 1} {
			t.Run(fmt.Sprintf("%s, %s", policy, phase), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.Create(w.job("clean", with("worker", 4, 0), func(job *tensorstack.GenericJob) {
					job.Spec.CleanUpPolicy, job.Spec.SuccessRules, job.Spec.FailureRules = policy, rules("worker 0"), rules("worker 0")
				}))
				w.untilPhase("clean", tensorstack.JobPhaseRunning)
				w.EndReplica("clean-worker-1", 0, 1)
				w.EndReplica("clean-worker-0", 0, code)
				w.untilPhase("clean", phase)
				w.UntilOnlyPods(left...)
				job := w.untilJob("clean", "counts the deleted pods", func(job *tensorstack.GenericJob) bool {
					return int(job.Status.Aggregate.Deleted) == 4-len(left)
				})
				if job.Status.Phase != phase {
					t.Errorf("phase = %s after the clean-up, want %s", job.Status.Phase, phase)
				}
				untilAnotherJobRuns(t)
				if got := slices.Sorted(maps.Keys(w.nodesOf("clean"))); !slices.Equal(got, left) {
					t.Errorf("pods = %v after the clean-up, want %v", got, left)
				}
			})
		}
	}
}

// TestPodsGetTheirVariablesLabelsAndServices: variables in the template are replaced, unknown ones are left as they
// are, pods have the documented labels, each replica has a Service, and a scheduler that is not installed is not used.
func TestPodsGetTheirVariablesLabelsAndServices(t *testing.T) {
	w := newWorld(t)
	job := w.job("tf", with("master", 1, 0), with("worker", 2, 0), func(job *tensorstack.GenericJob) {
		job.Spec.Service = &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Name: "http", Port: 2222}}}
		job.Spec.ReplicaSpecs[1].Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TF_CONFIG",
			Value: "$(service.worker[0].host):$(service.port[http]) $(type) $(rank)/$(replicas[worker]) $(service.name) $(HOME)"}}
		job.Spec.ReplicaSpecs[1].Template.Spec.SchedulerName = "volcano"
	})
	w.Create(job)
	w.UntilPods("tf-worker-1 exists", func(pods map[string]corev1.Pod) bool {
		pod, ok := pods["tf-worker-1"]
		if !ok {
			return false
		}
		if got, want := pod.Spec.Containers[0].Env[0].Value,
			"tf-worker-0:2222 worker 1/2 $(service.name) $(HOME)"; got != want {
			t.Errorf("TF_CONFIG is %q, want %q", got, want)
		}
		if pod.Labels["genericjob"] != "tf" || pod.Labels["genericjob-replica"] != "tf-worker-1" ||
			pod.Labels["tensorstack.dev/component"] != "genericjob" {
			t.Errorf("labels of tf-worker-1 = %v, want those of GenericJob tf", pod.Labels)
		}
		if pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
			t.Errorf("schedulerName = %q, want the default scheduler: Volcano is not installed", pod.Spec.SchedulerName)
		}
		return true
	})
	harness.Until(w.World, &corev1.ServiceList{}, "each replica has a Service", func(list *corev1.ServiceList) bool {
		var names []string
		for _, s := range list.Items {
			names = append(names, s.Name)
			if s.Spec.Selector["genericjob-replica"] != s.Name || s.Spec.Ports[0].Port != 2222 {
				t.Errorf("Service %s = %+v, want port 2222 and the selector of its replica", s.Name, s.Spec)
			}
		}
		slices.Sort(names)
		return slices.Equal(names, []string{"tf-master-0", "tf-worker-0", "tf-worker-1"})
	})
}

// TestDeletionInEachPhase: deleting a job deletes its pods and its Workload, whichever phase it is in.
func TestDeletionInEachPhase(t *testing.T) {
	for phase, reach := range map[tensorstack.JobPhase]func(*world){
		tensorstack.JobPhasePending: func(w *world) { w.untilPhase("deleted", tensorstack.JobPhasePending) },
		tensorstack.JobPhaseRunning: func(w *world) {
			w.queue(2)
			w.untilPhase("deleted", tensorstack.JobPhaseRunning)
		},
		tensorstack.JobPhasePaused: func(w *world) {
			w.queue(2)
			w.untilPhase("deleted", tensorstack.JobPhaseRunning)
			w.pause("deleted", true)
			w.untilPhase("deleted", tensorstack.JobPhasePaused)
		},
		tensorstack.JobPhaseResuming: func(w *world) {
			w.queue(2)
			w.untilPhase("deleted", tensorstack.JobPhaseRunning)
			w.pause("deleted", true)
			w.untilPhase("deleted", tensorstack.JobPhasePaused)
			w.annotateQueue(w.Namespace, "muster.dev/closed", "true")
			w.pause("deleted", false)
			w.untilPhase("deleted", tensorstack.JobPhaseResuming)
		},
		tensorstack.JobPhaseSucceeded: func(w *world) {
			w.queue(2)
			w.EndReplica("deleted-worker-0", 0, 0)
			w.untilPhase("deleted", tensorstack.JobPhaseSucceeded)
		},
		tensorstack.JobPhaseFailed: func(w *world) {
			w.queue(2)
			w.EndReplica("deleted-worker-0", 0, 1)
			w.untilPhase("deleted", tensorstack.JobPhaseFailed)
		},
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			job := w.job("deleted", with("worker", 2, 0), inQueue(0),
				func(job *tensorstack.GenericJob) { job.Spec.SuccessRules = rules("worker 0") })
			w.Create(job)
			reach(w)
			w.Delete(job)
			w.UntilOnlyPods()
			w.untilNoWorkload()
		})
	}
}

// TestDeletionOfAJobOnAnUnreachableNode: a job whose pod is in phase Unknown has phase Unknown itself. When it is
// deleted, its quota stays in use until its pod is gone: the pod may still run, so only its forced deletion, by someone
// who knows that the node is gone, lets the next job start.
func TestDeletionOfAJobOnAnUnreachableNode(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	silent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-silent"}}
	w.Shared(silent)
	job := w.job("lost", with("worker", 1, 0), inQueue(0), func(job *tensorstack.GenericJob) {
		job.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = "manual"
	})
	w.Create(job)
	pod := w.bind("lost-worker-0", "manual", silent.Name)
	w.PatchStatus(pod, `{"status":{"phase":"Running"}}`)
	w.untilPhase("lost", tensorstack.JobPhaseRunning)
	w.PatchStatus(pod, `{"status":{"phase":"Unknown"}}`)
	w.untilPhase("lost", tensorstack.JobPhaseUnknown)
	w.Create(w.job("next", with("worker", 1, 0), inQueue(0)))
	w.untilWaits("next", 0)
	w.Delete(job)
	w.UntilPods("lost-worker-0 is terminating",
		func(pods map[string]corev1.Pod) bool { return pods["lost-worker-0"].DeletionTimestamp != nil })
	untilAnotherJobRuns(t)
	w.untilWaits("next", 0)
	if err := w.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.untilPhase("next", tensorstack.JobPhaseRunning)
	w.UntilOnlyPods("next-worker-0")
}
