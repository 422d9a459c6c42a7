package jobset

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// edit changes the pod template of the workers, and whether the JobSet is suspended, in one write.
func (w *world) edit(suspend bool, edit func(*corev1.PodTemplateSpec)) {
	w.Helper()
	var js jobset.JobSet
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "js"}, &js); err != nil {
		w.Fatal(err)
	}
	after := js.DeepCopy()
	after.Spec.Suspend = &suspend
	if edit != nil {
		edit(&after.Spec.ReplicatedJobs[1].Template.Spec.Template)
	}
	if err := w.Client.Patch(w.Context(), after, client.MergeFrom(&js)); err != nil {
		w.Fatal(err)
	}
}

// TestTemplatesChangeWhileAJobSetIsSuspended: as Kueue's own adapter does it, templates are changed while the JobSet is
// suspended. Nothing is left of what an earlier admission added.
func TestTemplatesChangeWhileAJobSetIsSuspended(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.Suspend = ptr.To(true)
	w.Create(js)
	made := w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
	w.jobSet("js", "is suspended", func(js *jobset.JobSet) bool {
		return is(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason)(js) && counts("workers", 0, 0, 0, 0, 2)(js)
	})
	pool := func(name string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			t.Labels, t.Annotations = map[string]string{"admitted-to": name}, map[string]string{"given": name}
			t.Spec.NodeSelector = map[string]string{"pool": name}
			t.Spec.Tolerations = []corev1.Toleration{{Key: name, Operator: corev1.TolerationOpExists}}
		}
	}
	for _, name := range []string{"a", "b"} {
		w.edit(false, pool(name))
		w.jobSet("js", "is resumed", is(jobset.JobSetSuspended, metav1.ConditionFalse, jobset.JobSetResumedReason))
		w.run("js-leader-0", "js-workers-0", "js-workers-1")
		w.jobSet("js", "is ready", counts("workers", 2, 0, 0, 2, 0))
		pod := w.podsOf("js-workers-0")[0]
		if diff := cmp.Diff(map[string]string{"pool": name}, pod.Spec.NodeSelector); diff != "" || pod.Labels["admitted-to"] != name {
			t.Errorf("pods in %s: labels %v, node selector %s", name, pod.Labels, diff)
		}
		w.edit(true, func(t *corev1.PodTemplateSpec) {
			t.Labels, t.Annotations, t.Spec.NodeSelector, t.Spec.Tolerations = nil, nil, nil, nil
		})
		w.jobSet("js", "has no pods left", counts("workers", 0, 0, 0, 0, 2))
	}
	w.edit(false, nil)
	jobs := w.jobs("run as they were made", func(jobs map[string]batchv1.Job) bool { return !*jobs["js-workers-0"].Spec.Suspend })
	for _, name := range []string{"js-leader-0", "js-workers-0"} {
		if jobs[name].UID != made[name].UID {
			t.Errorf("%s was made anew", name)
		}
		if diff := cmp.Diff(made[name].Spec.Template, jobs[name].Spec.Template); diff != "" {
			t.Errorf("%s (-made +restored):\n%s", name, diff)
		}
	}
}

// TestAnEvictedJobSetKeepsFinishedJobs: before its first admission it has no children. An eviction suspends what has
// not ended; the rest, the Service and the claims stay; and it goes on where its quota is next.
func TestAnEvictedJobSetKeepsFinishedJobs(t *testing.T) {
	w := newWorld(t)
	w.queue(map[string]string{"a": "0"})
	w.Create(queued(claiming(w.set(), "data", jobset.RetentionPolicyDelete)))
	w.jobSet("js", "waits", is(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason))
	w.UntilWorkloadOf("js", "says so", func(wl *kueue.Workload) bool { return len(wl.Status.Conditions) > 0 })
	w.thereAre()
	w.claims()
	w.services("there are none", func(s map[string]corev1.Service) bool { return len(s) == 0 })
	w.grow("a", "5")
	made := w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
	for name, job := range made {
		if *job.Spec.Suspend || job.Generation != 1 {
			t.Errorf("%s was made suspended, only to be resumed", name)
		}
	}
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.succeed("js-workers-0")
	w.UntilWorkloadOf("js", "gives back what has ended", reclaims("workers", 2))
	service := w.services("there is one", func(s map[string]corev1.Service) bool { return len(s) == 1 })["js"]

	wl := w.UntilWorkloadOf("js", "runs", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.jobs("are suspended, but for what has ended", func(jobs map[string]batchv1.Job) bool {
		return *jobs["js-leader-0"].Spec.Suspend && *jobs["js-workers-1"].Spec.Suspend && !*jobs["js-workers-0"].Spec.Suspend && len(jobs) == 3
	})
	w.UntilWorkloadOf("js", "gives its quota back", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil && reclaims("workers", 2)(wl) })
	w.claims("data-js")
	w.replaceFlavor("a", "b", "3") // three pods are left
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
	jobs := w.jobs("are resumed", func(jobs map[string]batchv1.Job) bool {
		return !*jobs["js-leader-0"].Spec.Suspend && !*jobs["js-workers-1"].Spec.Suspend
	})
	for name, job := range jobs {
		want := map[string]string{"pool": "b"}
		if name == "js-workers-0" {
			want = map[string]string{"pool": "a"}
		}
		if diff := cmp.Diff(want, job.Spec.Template.Spec.NodeSelector); diff != "" || job.UID != made[name].UID {
			t.Errorf("%s: made anew: %v; nodes (-want +got): %s", name, job.UID != made[name].UID, diff)
		}
	}
	if got := w.services("it is the same", func(s map[string]corev1.Service) bool { return len(s) == 1 })["js"]; got.UID != service.UID {
		t.Error("the Service was made anew")
	}
	w.succeed("js-leader-0", "js-workers-1")
	w.jobSet("js", "completes", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
	w.UntilWorkloadOf("js", "is finished", func(wl *kueue.Workload) bool { return wl.Status.Conditions != nil && finished(wl) })
}

func finished(wl *kueue.Workload) bool {
	for _, c := range wl.Status.Conditions {
		if c.Type == kueue.WorkloadFinished && c.Status == metav1.ConditionTrue {
			return true
		}
	}
	return false
}

func reclaims(podSet kueue.PodSetReference, count int32) func(*kueue.Workload) bool {
	return func(wl *kueue.Workload) bool {
		for _, r := range wl.Status.ReclaimablePods {
			if r.Name == podSet {
				return r.Count == count
			}
		}
		return count == 0
	}
}

// grow sets the quota of the only flavor.
func (w *world) grow(pool, cpus string) { w.replaceFlavor("", pool, cpus) }

// replaceFlavor gives the queue the only flavor to, made if need be.
func (w *world) replaceFlavor(from, to, cpus string) {
	w.Helper()
	name := w.Namespace + "-" + to
	if from != "" {
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": to}}}
		w.Create(flavor)
		w.Cleanup(func() { _ = w.Client.Delete(context.Background(), flavor) })
	}
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups[0].Flavors = []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(name),
			Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpus)}}}}
	})
}

// TestARestartKeepsTheQuota: and pods that a restart may run again are not given back.
func TestARestartKeepsTheQuota(t *testing.T) {
	w := newWorld(t)
	w.queue(map[string]string{"a": "5"})
	js := queued(w.set())
	js.Spec.FailurePolicy = rules(1)
	w.Create(js)
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	admitted := w.UntilWorkloadOf("js", "is admitted", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Create(queuedRival(w))
	w.succeed("js-workers-0")
	w.jobSet("js", "counts it", counts("workers", 1, 1, 0, 1, 0))
	w.fail(1, "js-leader-0")
	w.jobSet("js", "restarts", func(js *jobset.JobSet) bool { return js.Status.Restarts == 1 })
	w.jobs("are of the new attempt", func(jobs map[string]batchv1.Job) bool {
		for _, name := range []string{"js-leader-0", "js-workers-0", "js-workers-1"} {
			if jobs[name].Labels[jobset.RestartAttemptKey] != "1" {
				return false
			}
		}
		return true
	})
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.jobSet("js", "is ready again", is(jobset.JobSetRestarting, metav1.ConditionFalse, jobset.JobsReadyReason))
	var wl kueue.Workload
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(admitted), &wl); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(admitted.Status.Admission, wl.Status.Admission); diff != "" || len(wl.Status.ReclaimablePods) != 0 {
		t.Errorf("given back %v, admission (-before +after):\n%s", wl.Status.ReclaimablePods, diff)
	}
	w.succeed("js-workers-0") // no restart is left: now it is given back, and the rival starts
	w.jobs("of the rival run", func(jobs map[string]batchv1.Job) bool { _, ok := jobs["rival-r-0"]; return ok })
}

// queuedRival needs two CPUs.
func queuedRival(w *world) *jobset.JobSet { return queued(w.named("rival", w.replicated("r", 1, 2))) }
