package vcjob

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
)

// TestAGangRunsTogetherAndCompletes: with names, labels and counts as Volcano has them, on the default scheduler.
func TestAGangRunsTogetherAndCompletes(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	w.Create(w.job("train", with("ps", 1, endless), with("worker", 2, endless)))
	job := w.untilJob("train", "runs whole", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Running && job.Status.Running == 3
	})
	if job.Status.MinAvailable != 3 || job.Spec.SchedulerName != "volcano" {
		t.Errorf("minAvailable %d, scheduler %q", job.Status.MinAvailable, job.Spec.SchedulerName)
	}
	w.UntilPods("they are known as Volcano's", func(pods map[string]corev1.Pod) bool {
		pod := pods["train-worker-1"]
		return pod.Labels["volcano.sh/job-name"] == "train" && pod.Labels["volcano.sh/task-spec"] == "worker" && pod.Spec.SchedulerName == corev1.DefaultSchedulerName
	})
	for _, name := range []string{"train-ps-0", "train-worker-0", "train-worker-1"} {
		w.EndReplica(name, 0, 0)
	}
	if job = w.untilPhase("train", volcano.Completed); job.Status.Succeeded != 3 || job.Status.RetryCount != 0 {
		t.Errorf("%d succeeded, %d retries", job.Status.Succeeded, job.Status.RetryCount)
	}
	harness.Until(w.World, &kueue.WorkloadList{}, "its quota is given back", func(list *kueue.WorkloadList) bool {
		return slices.ContainsFunc(list.Items[0].Status.Conditions, func(c metav1.Condition) bool { return c.Type == kueue.WorkloadFinished && c.Status == "True" })
	})
}

// TestARestartStormEndsAtMaxRetry: the job fails, with all its restarts counted, whichever way it restarts, and though
// the operator is killed in the middle.
func TestARestartStormEndsAtMaxRetry(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	for _, action := range []bus.Action{bus.RestartJobAction, bus.RestartPodAction} {
		name := strings.ToLower(string(action))
		w.Create(w.job(name, with("worker", 2, endless), on(bus.PodFailedEvent, action), func(job *volcano.Job) { job.Spec.MaxRetry = 3 }))
		for attempt := range 3 {
			w.EndReplica(name+"-worker-0", attempt, 137)
			if attempt == 1 {
				w.KillOperator()
			}
		}
		job := w.untilPhase(name, volcano.Failed)
		if s := job.Status; s.RetryCount != 3 || !strings.Contains(s.State.Message, "pod "+name+"-worker-0 has failed with exit code 137; retryCount is 3, the limit that maxRetry sets") {
			t.Errorf("%s: %d retries: %s", action, s.RetryCount, s.State.Message)
		}
		w.UntilPods("none of its pods runs on", func(pods map[string]corev1.Pod) bool {
			for podName, pod := range pods {
				if strings.HasPrefix(podName, name+"-") && pod.Status.Phase == corev1.PodRunning {
					return false
				}
			}
			return true
		})
	}
}

// TestAnEvictedPodRestartsItsJob: as the policy of every LatticeJob says.
func TestAnEvictedPodRestartsItsJob(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("evicted", with("worker", 2, endless), on(bus.PodEvictedEvent, bus.RestartJobAction)))
	w.untilJob("evicted", "runs whole", func(job *volcano.Job) bool { return job.Status.Running == 2 })
	var pod corev1.Pod
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "evicted-worker-1"}, &pod); err != nil {
		t.Fatal(err)
	}
	w.Delete(&pod)
	job := w.untilJob("evicted", "runs again", func(job *volcano.Job) bool {
		return job.Status.RetryCount == 1 && job.Status.State.Phase == volcano.Running && job.Status.Running == 2
	})
	if job.Status.Version != 1 {
		t.Errorf("version %d, want 1", job.Status.Version)
	}
}

// TestAPodWithAMissingClaimIsPending: in the queue default, which gives places, it keeps the one that it has, and is
// pending for as long as the policy bears.
func TestAPodWithAMissingClaimIsPending(t *testing.T) {
	w := newWorld(t)
	claims := func(task *volcano.TaskSpec) {
		task.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}}}
	}
	job := w.job("claims", with("worker", 2, endless, claims))
	job.Spec.Queue = ""
	job.Spec.Policies = []volcano.LifecyclePolicy{{Event: bus.PodPendingEvent, Action: bus.AbortJobAction, Timeout: &metav1.Duration{Duration: 5 * time.Second}}}
	w.Create(job)
	if aborted := w.untilPhase("claims", volcano.Aborted); aborted.Status.RetryCount != 0 || aborted.Status.Version != 0 {
		t.Errorf("it was begun anew: %+v", aborted.Status)
	}
	w.UntilOnlyPods()
}

// TestCommandsStopAndResumeAJob: a stopped one gives its quota to others. A Command that names no UID is for the job of
// the name.
func TestCommandsStopAndResumeAJob(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	held := w.job("held", with("worker", 2, endless))
	w.Create(held)
	w.untilPhase("held", volcano.Running)
	w.ask(held, bus.AbortJobAction)
	w.untilPhase("held", volcano.Aborted)
	w.UntilOnlyPods()
	other := w.job("other", with("worker", 2, endless))
	w.Create(other)
	w.untilPhase("other", volcano.Running)
	w.ask(held, bus.ResumeJobAction)
	w.untilJob("held", "waits for quota and says so", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Pending && job.Status.State.Reason == "WaitingForQuota" && job.Status.State.Message != ""
	})
	w.command(bus.CompleteJobAction, &metav1.OwnerReference{APIVersion: volcano.GroupVersion.String(), Kind: "Job", Name: "other"})
	w.untilPhase("other", volcano.Completed)
	w.untilPhase("held", volcano.Running)
	harness.Until(w.World, &bus.CommandList{}, "the Commands are gone", func(list *bus.CommandList) bool { return len(list.Items) == 0 })
}

// TestPodsAboveTheMinimumRunAsCapacityFrees: two of four at once, and in the end all.
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
		t.Errorf("%d succeeded, want 4", job.Status.Succeeded)
	}
}

// TestPodsAboveTheMinimumAreEvictedFirst: for a job that goes first, whose gang needs their room, and they come again
// when that has ended; neither is a restart.
func TestPodsAboveTheMinimumAreEvictedFirst(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	w.Create(w.job("elastic", with("worker", 4, endless), on(bus.PodEvictedEvent, bus.RestartJobAction), func(job *volcano.Job) { job.Spec.MinAvailable = 2 }))
	w.untilJob("elastic", "runs whole", func(job *volcano.Job) bool { return job.Status.Running == 4 })
	first := w.job("first", with("worker", 2, endless), func(job *volcano.Job) {
		job.Labels = map[string]string{kueue.WorkloadPriorityClassLabel: w.Namespace}
	})
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 100}
	w.Create(class, first)
	w.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), class); err != nil {
			w.Error(err)
		}
	})
	w.untilPhase("first", volcano.Running)
	w.UntilOnlyPods("elastic-worker-0", "elastic-worker-1", "first-worker-0", "first-worker-1")
	w.EndReplica("first-worker-0", 0, 0)
	w.EndReplica("first-worker-1", 0, 0)
	job := w.untilJob("elastic", "runs whole again", func(job *volcano.Job) bool { return job.Status.Running == 4 })
	if job.Status.RetryCount != 0 || job.Status.Version != 0 {
		t.Errorf("%d retries, version %d", job.Status.RetryCount, job.Status.Version)
	}
}

// TestAQueueIsFoundByItsName: a LocalQueue, else a ClusterQueue, else the job says which there are.
func TestAQueueIsFoundByItsName(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	w.Create(w.job("byname", with("worker", 1, endless), func(job *volcano.Job) { job.Spec.Queue = w.Namespace }))
	w.untilPhase("byname", volcano.Running)
	var local kueue.LocalQueue
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: w.Namespace}, &local); err != nil {
		t.Errorf("the LocalQueue of the ClusterQueue's name: %v", err)
	}
	w.Create(w.job("lost", with("worker", 1, endless), func(job *volcano.Job) { job.Spec.Queue = "nowhere" }))
	job := w.untilJob("lost", "says that there is no such queue", func(job *volcano.Job) bool { return job.Status.State.Reason == "QueueNotFound" })
	if m := job.Status.State.Message; !strings.Contains(m, "Queue nowhere is neither") || !strings.Contains(m, "q") || !strings.Contains(m, w.Namespace) {
		t.Errorf("it says %q", m)
	}
}

// TestPluginObjectsAreCreatedBeforePods, and go with the job.
func TestPluginObjectsAreCreatedBeforePods(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	job := w.job("plugged", with("master", 1, endless), with("worker", 2, endless), func(job *volcano.Job) {
		job.Spec.Plugins = map[string]volcano.PluginArguments{"env": {}, "mpi": {"--master=master"}}
	})
	w.Create(job)
	w.untilPhase("plugged", volcano.Running)
	objects := map[string]client.Object{"plugged-svc": &corev1.ConfigMap{}, "plugged-ssh": &corev1.Secret{}, "plugged": &networkingv1.NetworkPolicy{}}
	for name, object := range objects {
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if secret := objects["plugged-ssh"].(*corev1.Secret); !strings.HasPrefix(string(secret.Data["id_rsa"]), "-----BEGIN") {
		t.Error("the Secret has no key")
	}
	var pod corev1.Pod
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "plugged-master-0"}, &pod); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.Hostname != "plugged-master-0" || pod.Spec.Subdomain != "plugged" {
		t.Errorf("it is %s.%s", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
}

// TestAJobWhosePluginIsRefusedHoldsNoQuota: there are no pods without what a plugin makes, so others may have the room,
// and the job says what keeps it.
func TestAJobWhosePluginIsRefusedHoldsNoQuota(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: w.Namespace}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	w.Create(w.job("taken", with("worker", 1, endless), plugin("svc")))
	const why = "the name taken is taken by an object that belongs to another owner"
	w.untilJob("taken", "says what keeps it", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Pending && strings.Contains(job.Status.State.Message, why)
	})
	w.Create(w.job("next", with("worker", 1, endless)))
	w.untilPhase("next", volcano.Running)
}

// TestAFinishedJobIsDeletedAfterItsTTL: at once, with a time of zero.
func TestAFinishedJobIsDeletedAfterItsTTL(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	job := w.job("brief", with("worker", 1, "1s"), func(job *volcano.Job) { job.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) })
	w.Create(job)
	harness.Until(w.World, &volcano.JobList{}, "it is gone", func(list *volcano.JobList) bool { return len(list.Items) == 0 })
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
		t.Errorf("reading it: %v", err)
	}
}
