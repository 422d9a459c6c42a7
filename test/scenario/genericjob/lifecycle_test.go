package genericjob

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// TestRestartBudget: for each policy, how often a replica comes back under its name, and what is told of it.
func TestRestartBudget(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name   string
		policy tensorstack.RestartPolicy
		codes  []int // of the attempts of worker-0, one after the other
		want   tensorstack.JobPhase
	}{
		{"never", tensorstack.RestartPolicy{Policy: tensorstack.RestartNever, Limit: 3}, []int{1}, tensorstack.JobPhaseFailed},
		{"default", tensorstack.RestartPolicy{}, []int{1}, tensorstack.JobPhaseFailed},
		{"onfailure", tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 2}, []int{1, 2, 0}, tensorstack.JobPhaseSucceeded},
		{"spent", tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 2}, []int{1, 2, 3}, tensorstack.JobPhaseFailed},
		{"always", tensorstack.RestartPolicy{Policy: tensorstack.RestartAlways, Limit: 2}, []int{0, 1, 0}, tensorstack.JobPhaseSucceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := &world{w.In(t)}
			w.Create(w.job(test.name, withPolicy("worker", 2, test.policy), func(job *tensorstack.GenericJob) { job.Spec.SuccessRules = rules("worker 0") }))
			w.untilPhase(test.name, tensorstack.JobPhaseRunning)
			for attempt, code := range test.codes {
				w.EndReplica(test.name+"-worker-0", attempt, code)
			}
			job := w.untilPhase(test.name, test.want)
			task := job.Status.Tasks[0]
			if want := int32(len(test.codes) - 1); task.RestartCount != want || task.Replicas[0].RestartCount != want || task.Replicas[1].RestartCount != 0 {
				t.Errorf("restarts are told as %+v, want %d of worker-0", task, want)
			}
			last := task.Replicas[0].Containers
			if len(last) != 1 || last[0].ExitCode == nil || int(*last[0].ExitCode) != test.codes[len(test.codes)-1] || last[0].State != tensorstack.ContainerTerminated {
				t.Errorf("of its container it tells %+v", last)
			}
		})
	}
}

// TestEachReplicaHasABudgetOfItsOwn: what one has used of it is missing to no other, the sum is told, and rules count a
// replica once it has none left.
func TestEachReplicaHasABudgetOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("each", with("worker", 3, 1), func(job *tensorstack.GenericJob) {
		job.Spec.SuccessRules, job.Spec.FailureRules = rules("worker 1"), rules("worker 0+1")
	}))
	w.untilPhase("each", tensorstack.JobPhaseRunning)
	for _, pod := range []string{"each-worker-0", "each-worker-1", "each-worker-2"} {
		w.EndReplica(pod, 0, 1)
	}
	w.untilJob("each", "has restarted each", func(job *tensorstack.GenericJob) bool { return job.Status.Tasks[0].RestartCount == 3 })
	w.EndReplica("each-worker-0", 1, 2)
	w.EndReplica("each-worker-2", 1, 0)
	seen := w.untilJob("each", "tells of two ends", func(job *tensorstack.GenericJob) bool {
		return job.Status.Aggregate.Failed == 1 && job.Status.Aggregate.Succeeded == 1
	})
	if condition(seen, tensorstack.JobCompleted).Status == "True" {
		t.Errorf("it has ended with one of the two that the rule names: %+v", seen.Status.Conditions)
	}
	w.EndReplica("each-worker-1", 1, 3)
	job := w.untilPhase("each", tensorstack.JobPhaseFailed)
	if got := condition(job, tensorstack.JobFailed).Message; got != `The job is failed with rule: {"worker":["0","1"]}` {
		t.Errorf("it says %q", got)
	}
	for i, r := range job.Status.Tasks[0].Replicas {
		if r.RestartCount != 1 {
			t.Errorf("worker-%d was restarted %d times", i, r.RestartCount)
		}
	}
}

// TestARestartedReplicaIsReported: the condition says which pod failed and how, until all run again.
func TestARestartedReplicaIsReported(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("told", with("worker", 2, 1)))
	w.untilPhase("told", tensorstack.JobPhaseRunning)
	before := w.uids()
	w.EndReplica("told-worker-1", 0, 137)
	w.untilJob("told", "tells of the failure", func(job *tensorstack.GenericJob) bool {
		c := condition(job, tensorstack.JobReplicaFailure)
		return c.Status == "True" && c.Reason == "ErrorInPod" && c.Message == "Pod[told-worker-1] exited with error code 137"
	})
	w.untilJob("told", "tells that all run again", func(job *tensorstack.GenericJob) bool {
		c := condition(job, tensorstack.JobReplicaFailure)
		return c.Status == "False" && c.Message == "All pods are running normally." && job.Status.Tasks[0].RestartCount == 1
	})
	after := w.uids()
	if before["told-worker-0"] != after["told-worker-0"] || before["told-worker-1"] == after["told-worker-1"] {
		t.Errorf("pods were %v and are %v: want another told-worker-1, and it alone", before, after)
	}
}

// TestADeletedPodIsRecreated: under its name, once it is gone, and without a restart being counted.
func TestADeletedPodIsRecreated(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("lost", with("worker", 1, 0)))
	w.untilPhase("lost", tensorstack.JobPhaseRunning)
	before := w.uids()["lost-worker-0"]
	w.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lost-worker-0", Namespace: w.Namespace}})
	w.UntilPods("another is there", func(pods map[string]corev1.Pod) bool {
		pod, ok := pods["lost-worker-0"]
		return ok && pod.UID != before
	})
	w.EndReplica("lost-worker-0", 0, 0)
	if job := w.untilPhase("lost", tensorstack.JobPhaseSucceeded); job.Status.Tasks[0].RestartCount != 0 {
		t.Errorf("%d restarts are told", job.Status.Tasks[0].RestartCount)
	}
}

// TestCleanUp: what is left of a job of four when its first has ended, well or not, and its second has failed.
func TestCleanUp(t *testing.T) {
	for policy, left := range map[tensorstack.CleanUpPolicy][]string{
		tensorstack.CleanUpNone:       {"clean-worker-0", "clean-worker-1", "clean-worker-2", "clean-worker-3"},
		tensorstack.CleanUpUnfinished: {"clean-worker-0", "clean-worker-1"},
		tensorstack.CleanUpAll:        nil,
	} {
		for phase, code := range map[tensorstack.JobPhase]int{tensorstack.JobPhaseSucceeded: 0, tensorstack.JobPhaseFailed: 1} {
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
				job := w.untilJob("clean", "counts what it deleted", func(job *tensorstack.GenericJob) bool {
					return int(job.Status.Aggregate.Deleted) == 4-len(left)
				})
				if job.Status.Phase != phase {
					t.Errorf("it is %s", job.Status.Phase)
				}
			})
		}
	}
}

// TestPodsGetTheirVariablesLabelsAndServices: on the pods as the API server has them.
func TestPodsGetTheirVariablesLabelsAndServices(t *testing.T) {
	w := newWorld(t)
	job := w.job("tf", with("master", 1, 0), with("worker", 2, 0), func(job *tensorstack.GenericJob) {
		job.Spec.Service = &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Name: "http", Port: 2222}}}
		job.Spec.ReplicaSpecs[1].Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TF_CONFIG",
			Value: "$(service.worker[0].host):$(service.port[http]) $(type) $(rank)/$(replicas[worker]) $(service.ps[0].host) $(HOME)"}}
		job.Spec.ReplicaSpecs[1].Template.Spec.SchedulerName = "volcano"
	})
	w.Create(job)
	w.UntilPods("worker-1 is there", func(pods map[string]corev1.Pod) bool {
		pod, ok := pods["tf-worker-1"]
		if !ok {
			return false
		}
		if got, want := pod.Spec.Containers[0].Env[0].Value, "tf-worker-0:2222 worker 1/2 $(service.ps[0].host) $(HOME)"; got != want {
			t.Errorf("TF_CONFIG is %q, want %q", got, want)
		}
		if pod.Labels["genericjob"] != "tf" || pod.Labels["genericjob-replica"] != "tf-worker-1" || pod.Labels["tensorstack.dev/component"] != "genericjob" {
			t.Errorf("its labels are %v", pod.Labels)
		}
		if pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
			t.Errorf("it goes to %s, which is not there", pod.Spec.SchedulerName)
		}
		return true
	})
	harness.Until(w.World, &corev1.ServiceList{}, "each replica has a Service", func(list *corev1.ServiceList) bool {
		var names []string
		for _, s := range list.Items {
			names = append(names, s.Name)
			if s.Spec.Selector["genericjob-replica"] != s.Name || s.Spec.Ports[0].Port != 2222 {
				t.Errorf("the Service %s is %+v", s.Name, s.Spec)
			}
		}
		slices.Sort(names)
		return slices.Equal(names, []string{"tf-master-0", "tf-worker-0", "tf-worker-1"})
	})
}

// TestDeletionInEachPhase: whatever the job does, its pods go with it.
func TestDeletionInEachPhase(t *testing.T) {
	for phase, reach := range map[tensorstack.JobPhase]func(*world){
		tensorstack.JobPhasePending: func(w *world) { w.untilPhase("gone", tensorstack.JobPhasePending) },
		tensorstack.JobPhaseRunning: func(w *world) {
			w.queue(2)
			w.untilPhase("gone", tensorstack.JobPhaseRunning)
		},
		tensorstack.JobPhasePaused: func(w *world) {
			w.queue(2)
			w.untilPhase("gone", tensorstack.JobPhaseRunning)
			w.pause("gone", true)
			w.untilPhase("gone", tensorstack.JobPhasePaused)
		},
		tensorstack.JobPhaseResuming: func(w *world) {
			w.queue(2)
			w.untilPhase("gone", tensorstack.JobPhaseRunning)
			w.pause("gone", true)
			w.untilPhase("gone", tensorstack.JobPhasePaused)
			w.AnnotateQueue(w.Namespace, "muster.dev/closed", "true")
			w.pause("gone", false)
			w.untilPhase("gone", tensorstack.JobPhaseResuming)
		},
		tensorstack.JobPhaseSucceeded: func(w *world) {
			w.queue(2)
			w.EndReplica("gone-worker-0", 0, 0)
			w.untilPhase("gone", tensorstack.JobPhaseSucceeded)
		},
		tensorstack.JobPhaseFailed: func(w *world) {
			w.queue(2)
			w.EndReplica("gone-worker-0", 0, 1)
			w.untilPhase("gone", tensorstack.JobPhaseFailed)
		},
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			job := w.job("gone", with("worker", 2, 0), inQueue(0), func(job *tensorstack.GenericJob) { job.Spec.SuccessRules = rules("worker 0") })
			w.Create(job)
			reach(w)
			w.Delete(job)
			w.UntilOnlyPods()
			w.untilNoWorkload()
		})
	}
}

// TestDeletionOfAJobOnAnUnreachableNode: its phase is Unknown; what it used is nobody else's before somebody who knows
// that the machine is gone has said so, by removing its pod.
func TestDeletionOfAJobOnAnUnreachableNode(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	silent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-silent"}}
	w.Shared(silent)
	job := w.job("lost", with("worker", 1, 0), inQueue(0), func(job *tensorstack.GenericJob) {
		job.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = "nobody"
	})
	w.Create(job)
	pod := w.bind("lost-worker-0", "nobody", silent.Name)
	w.PatchStatus(pod, `{"status":{"phase":"Running"}}`)
	w.untilPhase("lost", tensorstack.JobPhaseRunning)
	w.PatchStatus(pod, `{"status":{"phase":"Unknown"}}`)
	w.untilPhase("lost", tensorstack.JobPhaseUnknown)
	w.Create(w.job("next", with("worker", 1, 0), inQueue(0)))
	w.untilWaits("next", 0)
	w.Delete(job)
	w.UntilPods("its pod is told to go", func(pods map[string]corev1.Pod) bool { return pods["lost-worker-0"].DeletionTimestamp != nil })
	w.untilWaits("next", 0)
	if err := w.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.untilPhase("next", tensorstack.JobPhaseRunning)
	w.UntilOnlyPods("next-worker-0")
}
