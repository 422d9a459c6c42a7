package vcjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAGangRunsTogetherAndCompletes: the pods, labels and counts of a job are those of Volcano, but its pods use the
// default scheduler. When all pods have succeeded the job is completed and its quota released.
func TestAGangRunsTogetherAndCompletes(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	w.Create(w.job("train", with("ps", 1, endless), with("worker", 2, endless)))
	job := w.untilJob("train", "runs with all its pods", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Running && job.Status.Running == 3
	})
	if job.Status.MinAvailable != 3 || job.Spec.SchedulerName != "volcano" {
		t.Errorf("minAvailable = %d, schedulerName = %q, want 3 and volcano", job.Status.MinAvailable, job.Spec.SchedulerName)
	}
	w.UntilPods("train-worker-1 has the labels of Volcano and the default scheduler",
		func(pods map[string]corev1.Pod) bool {
			pod := pods["train-worker-1"]
			return pod.Labels["volcano.sh/job-name"] == "train" && pod.Labels["volcano.sh/task-spec"] == "worker" &&
				pod.Spec.SchedulerName == corev1.DefaultSchedulerName
		})
	for _, name := range []string{"train-ps-0", "train-worker-0", "train-worker-1"} {
		w.EndReplica(name, 0, 0)
	}
	if job = w.untilPhase("train", volcano.Completed); job.Status.Succeeded != 3 || job.Status.RetryCount != 0 {
		t.Errorf("succeeded = %d, retryCount = %d, want 3 and 0", job.Status.Succeeded, job.Status.RetryCount)
	}
	w.UntilWorkloadOf("train", "is finished", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
	})
}

// TestARestartStormEndsAtMaxRetry: a job whose pod fails again and again fails after maxRetry restarts, whether the job
// or only the pod is restarted, and although the operator is killed meanwhile.
func TestARestartStormEndsAtMaxRetry(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	for _, action := range []bus.Action{bus.RestartJobAction, bus.RestartPodAction} {
		name := strings.ToLower(string(action))
		w.Create(w.job(name, with("worker", 2, endless), on(bus.PodFailedEvent, action),
			func(job *volcano.Job) { job.Spec.MaxRetry = 3 }))
		for attempt := range 3 {
			w.EndReplica(name+"-worker-0", attempt, 137)
			if attempt == 1 {
				w.Operator().Kill()
			}
		}
		job := w.untilPhase(name, volcano.Failed)
		want := "pod " + name + "-worker-0 has failed with exit code 137; retryCount is 3, the limit that maxRetry sets"
		if s := job.Status; s.RetryCount != 3 || !strings.Contains(s.State.Message, want) {
			t.Errorf("%s: retryCount = %d with the message %q, want 3 and %q", action, s.RetryCount, s.State.Message, want)
		}
		w.UntilPods("no pod of "+name+" runs", func(pods map[string]corev1.Pod) bool {
			for podName, pod := range pods {
				if strings.HasPrefix(podName, name+"-") && pod.Status.Phase == corev1.PodRunning {
					return false
				}
			}
			return true
		})
	}
}

// TestAnEvictedPodRestartsItsJob: with the policy of all LatticeJobs, RestartJob on PodEvicted, deleting a pod restarts
// the job, which counts as one retry.
func TestAnEvictedPodRestartsItsJob(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("evicted", with("worker", 2, endless), on(bus.PodEvictedEvent, bus.RestartJobAction)))
	w.untilJob("evicted", "runs with all its pods", func(job *volcano.Job) bool { return job.Status.Running == 2 })
	w.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "evicted-worker-1", Namespace: w.Namespace}})
	job := w.untilJob("evicted", "runs again after one retry", func(job *volcano.Job) bool {
		return job.Status.RetryCount == 1 && job.Status.State.Phase == volcano.Running && job.Status.Running == 2
	})
	if job.Status.Version != 1 {
		t.Errorf("version = %d, want 1", job.Status.Version)
	}
}

// TestAPodWithAMissingClaimIsPending: in the queue default, which assigns nodes, pods that mount a missing claim stay
// pending on their nodes, without a restart, until the timeout of the PodPending policy aborts the job.
func TestAPodWithAMissingClaimIsPending(t *testing.T) {
	w := newWorld(t)
	claims := func(task *volcano.TaskSpec) {
		task.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}}}
	}
	job := w.job("claims", with("worker", 2, endless, claims))
	job.Spec.Queue = ""
	job.Spec.Policies = []volcano.LifecyclePolicy{{Event: bus.PodPendingEvent, Action: bus.AbortJobAction,
		Timeout: &metav1.Duration{Duration: 5 * time.Second}}}
	w.Create(job)
	if aborted := w.untilPhase("claims", volcano.Aborted); aborted.Status.RetryCount != 0 || aborted.Status.Version != 0 {
		t.Errorf("retryCount = %d, version = %d, want 0 and 0: the job must not restart", aborted.Status.RetryCount,
			aborted.Status.Version)
	}
	w.UntilOnlyPods()
}

// TestCommandsStopAndResumeAJob: Commands abort, resume and complete jobs, and are deleted once carried out. An aborted
// job releases its quota to others. A Command whose target has no UID applies to the job of that name.
func TestCommandsStopAndResumeAJob(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	aborted := w.job("aborted", with("worker", 2, endless))
	w.Create(aborted)
	w.untilPhase("aborted", volcano.Running)
	w.commandJob(aborted, bus.AbortJobAction)
	w.untilPhase("aborted", volcano.Aborted)
	w.UntilOnlyPods()
	other := w.job("other", with("worker", 2, endless))
	w.Create(other)
	w.untilPhase("other", volcano.Running)
	w.commandJob(aborted, bus.ResumeJobAction)
	w.untilJob("aborted", "reports that it waits for quota", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Pending && job.Status.State.Reason == "WaitingForQuota" &&
			job.Status.State.Message != ""
	})
	w.createCommand(bus.CompleteJobAction,
		&metav1.OwnerReference{APIVersion: volcano.GroupVersion.String(), Kind: "Job", Name: "other"})
	w.untilPhase("other", volcano.Completed)
	w.untilPhase("aborted", volcano.Running)
	harness.Until(w.World, &bus.CommandList{}, "the Commands are deleted",
		func(list *bus.CommandList) bool { return len(list.Items) == 0 })
}

// TestPodsAboveTheMinimumRunAsCapacityFrees: with quota for minAvailable only, a job runs these pods first and the
// others when those have ended.
func TestPodsAboveTheMinimumRunAsCapacityFrees(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("elastic", with("worker", 4, endless), func(job *volcano.Job) { job.Spec.MinAvailable = 2 }))
	w.untilPhase("elastic", volcano.Running)
	w.UntilOnlyPods("elastic-worker-0", "elastic-worker-1")
	for _, name := range []string{"elastic-worker-0", "elastic-worker-1", "elastic-worker-2", "elastic-worker-3"} {
		w.EndReplica(name, 0, 0)
	}
	if job := w.untilPhase("elastic", volcano.Completed); job.Status.Succeeded != 4 {
		t.Errorf("succeeded = %d, want 4", job.Status.Succeeded)
	}
}

// TestPodsAboveTheMinimumAreEvictedFirst: a job of higher priority evicts the pods above minAvailable of another job.
// They are recreated when it has ended, and neither counts as a restart.
func TestPodsAboveTheMinimumAreEvictedFirst(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	w.Create(w.job("elastic", with("worker", 4, endless), on(bus.PodEvictedEvent, bus.RestartJobAction),
		func(job *volcano.Job) { job.Spec.MinAvailable = 2 }))
	w.untilJob("elastic", "runs with all its pods", func(job *volcano.Job) bool { return job.Status.Running == 4 })
	w.Create(w.prioritized("first", 2))
	w.untilPhase("first", volcano.Running)
	w.UntilOnlyPods("elastic-worker-0", "elastic-worker-1", "first-worker-0", "first-worker-1")
	w.EndReplica("first-worker-0", 0, 0)
	w.EndReplica("first-worker-1", 0, 0)
	job := w.untilJob("elastic", "runs with all its pods again",
		func(job *volcano.Job) bool { return job.Status.Running == 4 })
	if job.Status.RetryCount != 0 || job.Status.Version != 0 {
		t.Errorf("retryCount = %d, version = %d, want 0 and 0", job.Status.RetryCount, job.Status.Version)
	}
}

// TestAQueueIsFoundByItsName: the queue of a job may be the name of a ClusterQueue, for which a LocalQueue is created.
// If there is no queue of the name, the message lists those that exist.
func TestAQueueIsFoundByItsName(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	w.Create(w.job("byname", with("worker", 1, endless), func(job *volcano.Job) { job.Spec.Queue = w.Namespace }))
	w.untilPhase("byname", volcano.Running)
	// created for the ClusterQueue
	w.Get(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Namespace: w.Namespace}})
	w.Create(w.job("lost", with("worker", 1, endless), func(job *volcano.Job) { job.Spec.Queue = "nowhere" }))
	job := w.untilJob("lost", "reports that there is no such queue",
		func(job *volcano.Job) bool { return job.Status.State.Reason == "QueueNotFound" })
	if m := job.Status.State.Message; !strings.Contains(m, "Queue nowhere is neither") || !strings.Contains(m, "q") ||
		!strings.Contains(m, w.Namespace) {
		t.Errorf("message = %q, want that queue nowhere does not exist, and the queues q and %s", m, w.Namespace)
	}
}

// TestPluginMpiBringsSvcAndSsh: a job with the plugin mpi also gets the objects and host names of the plugins svc and
// ssh.
func TestPluginMpiBringsSvcAndSsh(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	job := w.job("plugged", with("master", 1, endless), with("worker", 2, endless), func(job *volcano.Job) {
		job.Spec.Plugins = map[string]volcano.PluginArguments{"env": {}, "mpi": {"--master=master"}}
	})
	w.Create(job)
	w.untilPhase("plugged", volcano.Running)
	w.getOwned(&corev1.ConfigMap{}, "plugged-svc")
	w.getOwned(&networkingv1.NetworkPolicy{}, "plugged")
	secret := &corev1.Secret{}
	if w.getOwned(secret, "plugged-ssh"); !strings.HasPrefix(string(secret.Data["id_rsa"]), "-----BEGIN") {
		t.Error("id_rsa of the Secret is not a private key")
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plugged-master-0", Namespace: w.Namespace}}
	if w.Get(pod); pod.Spec.Hostname != "plugged-master-0" || pod.Spec.Subdomain != "plugged" {
		t.Errorf("host name = %s.%s, want plugged-master-0.plugged", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
}

// TestAJobWhosePluginFailsHoldsNoQuota: a job has no pods until its plugins have created their objects. While one
// cannot, the job reports the reason and its quota is free for others.
func TestAJobWhosePluginFailsHoldsNoQuota(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "blocked", Namespace: w.Namespace},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	w.Create(w.job("blocked", with("worker", 1, endless), plugin("svc")))
	const why = "the name blocked is taken by an object that belongs to another owner"
	w.untilJob("blocked", "reports the name that its plugin cannot use", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Pending && strings.Contains(job.Status.State.Message, why)
	})
	w.Create(w.job("next", with("worker", 1, endless)))
	w.untilPhase("next", volcano.Running)
}

// TestAFinishedJobIsDeletedAfterItsTTL: a job with ttlSecondsAfterFinished 0 is deleted as soon as it has ended.
func TestAFinishedJobIsDeletedAfterItsTTL(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	job := w.job("brief", with("worker", 1, "1s"),
		func(job *volcano.Job) { job.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) })
	w.Create(job)
	harness.Until(w.World, &volcano.JobList{}, "the job is deleted",
		func(list *volcano.JobList) bool { return len(list.Items) == 0 })
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
		t.Errorf("reading the deleted job: %v, want not found", err)
	}
}

// TestARunningPodThatIsNotReadyDoesNotCount: pods whose container ends again and again are in the phase Running. The
// status says that none of them is ready, which `muster explain` shows.
func TestARunningPodThatIsNotReadyDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("crashing", with("worker", 2, "0s", func(task *volcano.TaskSpec) {
		task.MaxRetry = 1000
		task.Template.Annotations["muster.dev/sim-exit-code"] = "1"
		task.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	})))
	w.untilJob("crashing", "has two running pods, none of them ready", func(job *volcano.Job) bool {
		return job.Status.Running == 2 && job.Status.ControlledResources[volcano.ReadyKey] == "0"
	})
	if text, _ := w.Explain("vcjob/crashing"); !strings.Contains(text, "0/2 ready or done") {
		t.Errorf("muster explain says\n%s\nwant 0/2 ready or done", text)
	}
}
