package jobset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// edit changes the pod template of the workers and the suspension of JobSet js in one write.
func (w *world) edit(suspend bool, edit func(*corev1.PodTemplateSpec)) {
	w.Helper()
	js := w.named("js")
	w.Change(js, func() {
		js.Spec.Suspend = &suspend
		if edit != nil {
			edit(&js.Spec.ReplicatedJobs[1].Template.Spec.Template)
		}
	})
}

// TestTemplatesChangeWhileAJobSetIsSuspended: pod templates may be changed while the JobSet is suspended, as Kueue does
// at each admission. Jobs that are resumed have the new templates, with nothing left of those of an earlier admission.
func TestTemplatesChangeWhileAJobSetIsSuspended(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.Suspend = ptr.To(true)
	w.Create(js)
	created := w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilJobSet("js", "is suspended", func(js *jobset.JobSet) bool {
		return is(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason)(js) &&
			counts("workers", 0, 0, 0, 0, 2)(js)
	})
	pool := func(name string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			t.Labels, t.Annotations = map[string]string{"admitted-to": name}, map[string]string{"added-by": name}
			t.Spec.NodeSelector = map[string]string{"pool": name}
			t.Spec.Tolerations = []corev1.Toleration{{Key: name, Operator: corev1.TolerationOpExists}}
		}
	}
	for _, name := range []string{"a", "b"} {
		w.edit(false, pool(name))
		w.untilJobSet("js", "is resumed", is(jobset.JobSetSuspended, metav1.ConditionFalse, jobset.JobSetResumedReason))
		w.run("js-leader-0", "js-workers-0", "js-workers-1")
		w.untilJobSet("js", "is ready", counts("workers", 2, 0, 0, 2, 0))
		pod := w.podsOf("js-workers-0")[0]
		if diff := cmp.Diff(map[string]string{"pool": name}, pod.Spec.NodeSelector); diff != "" ||
			pod.Labels["admitted-to"] != name {
			t.Errorf("pod in pool %s has labels %v; node selector (-want +got):\n%s", name, pod.Labels, diff)
		}
		w.edit(true, func(t *corev1.PodTemplateSpec) {
			t.Labels, t.Annotations, t.Spec.NodeSelector, t.Spec.Tolerations = nil, nil, nil, nil
		})
		w.untilJobSet("js", "has two suspended worker Jobs", counts("workers", 0, 0, 0, 0, 2))
	}
	w.edit(false, nil)
	jobs := w.untilJobs("are resumed",
		func(jobs map[string]batchv1.Job) bool { return !*jobs["js-workers-0"].Spec.Suspend })
	for _, name := range []string{"js-leader-0", "js-workers-0"} {
		if jobs[name].UID != created[name].UID {
			t.Errorf("%s was recreated, want it resumed", name)
		}
		if diff := cmp.Diff(created[name].Spec.Template, jobs[name].Spec.Template); diff != "" {
			t.Errorf("template of Job %s (-created +resumed):\n%s", name, diff)
		}
	}
}

// TestAnEvictedJobSetKeepsFinishedJobs: a JobSet has no Jobs, Service or claims before its first admission. An eviction
// suspends its unfinished Jobs and keeps the finished ones, the Service and the claims. The suspended Jobs are resumed
// in the flavor of the next admission.
func TestAnEvictedJobSetKeepsFinishedJobs(t *testing.T) {
	w := newWorld(t)
	w.queue(map[string]string{"a": "0"})
	w.Create(queued(claiming(w.set(), "data", jobset.RetentionPolicyDelete)))
	w.untilJobSet("js", "is suspended", is(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason))
	w.UntilWorkloadOf("js", "has conditions", func(wl *kueue.Workload) bool { return len(wl.Status.Conditions) > 0 })
	w.untilOnlyJobs()
	w.untilClaims()
	w.untilServices("there are no Services", func(s map[string]corev1.Service) bool { return len(s) == 0 })
	w.grow("a", "5")
	created := w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	for name, job := range created {
		if *job.Spec.Suspend || job.Generation != 1 {
			t.Errorf("Job %s was created suspended and then resumed, want it created running", name)
		}
	}
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.succeed("js-workers-0")
	w.UntilWorkloadOf("js", "reclaims the two pods of the finished Job", reclaims("workers", 2))
	service := w.untilServices("there is one Service", func(s map[string]corev1.Service) bool { return len(s) == 1 })["js"]

	wl := w.UntilWorkloadOf("js", "is admitted", func(wl *kueue.Workload) bool { return wl.Status.Admission != nil })
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.untilJobs("are suspended, except for the finished one", func(jobs map[string]batchv1.Job) bool {
		return *jobs["js-leader-0"].Spec.Suspend && *jobs["js-workers-1"].Spec.Suspend &&
			!*jobs["js-workers-0"].Spec.Suspend && len(jobs) == 3
	})
	w.UntilWorkloadOf("js", "has no quota, and its finished pods are still reclaimable",
		func(wl *kueue.Workload) bool { return wl.Status.Admission == nil && reclaims("workers", 2)(wl) })
	w.untilClaims("data-js")
	w.replaceFlavor("a", "b", "3") // the three unfinished pods
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
	jobs := w.untilJobs("are resumed", func(jobs map[string]batchv1.Job) bool {
		return !*jobs["js-leader-0"].Spec.Suspend && !*jobs["js-workers-1"].Spec.Suspend
	})
	for name, job := range jobs {
		want := map[string]string{"pool": "b"}
		if name == "js-workers-0" {
			want = map[string]string{"pool": "a"}
		}
		if diff := cmp.Diff(want, job.Spec.Template.Spec.NodeSelector); diff != "" || job.UID != created[name].UID {
			t.Errorf("%s: recreated: %v, want false; node selector (-want +got):\n%s", name, job.UID != created[name].UID, diff)
		}
	}
	if got := w.untilServices("there is still one Service",
		func(s map[string]corev1.Service) bool { return len(s) == 1 })["js"]; got.UID != service.UID {
		t.Error("the Service was recreated, want the same one")
	}
	w.succeed("js-leader-0", "js-workers-1")
	w.untilJobSet("js", "is completed", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
	w.UntilWorkloadOf("js", "is finished", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
	})
}

// reclaims reports whether the Workload has that many reclaimable pods of the pod set.
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

// grow sets the CPU quota of the only flavor, which is named after the pool.
func (w *world) grow(pool, cpus string) { w.replaceFlavor("", pool, cpus) }

// replaceFlavor makes the flavor of the pool to, with this CPU quota, the only one of the queue. It creates the flavor,
// unless from is empty.
func (w *world) replaceFlavor(from, to, cpus string) {
	w.Helper()
	name := w.Namespace + "-" + to
	if from != "" {
		w.Shared(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": to}}})
	}
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups[0].Flavors = []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(name),
			Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpus)}}}}
	})
}

// TestARestartKeepsTheQuota: a restarted JobSet keeps its admission. Its succeeded pods are not reclaimable while a
// restart could run them again. They are when no restart is left, and then another JobSet gets their quota.
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
	w.untilJobSet("js", "has one succeeded worker Job", counts("workers", 1, 1, 0, 1, 0))
	w.fail(1, "js-leader-0")
	w.untilJobSet("js", "has one restart", func(js *jobset.JobSet) bool { return js.Status.Restarts == 1 })
	w.untilJobs("are of attempt 1", func(jobs map[string]batchv1.Job) bool {
		for _, name := range []string{"js-leader-0", "js-workers-0", "js-workers-1"} {
			if jobs[name].Labels[jobset.RestartAttemptKey] != "1" {
				return false
			}
		}
		return true
	})
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilJobSet("js", "is ready again", is(jobset.JobSetRestarting, metav1.ConditionFalse, jobset.JobsReadyReason))
	wl := admitted.DeepCopy()
	w.Get(wl)
	if diff := cmp.Diff(admitted.Status.Admission, wl.Status.Admission); diff != "" ||
		len(wl.Status.ReclaimablePods) != 0 {
		t.Errorf("reclaimable pods = %v, want none; admission (-before +after):\n%s", wl.Status.ReclaimablePods, diff)
	}
	w.succeed("js-workers-0") // no restart is left: its quota is reclaimed, and the rival starts
	w.untilJobs("include rival-r-0", func(jobs map[string]batchv1.Job) bool { _, ok := jobs["rival-r-0"]; return ok })
}

// queuedRival returns a JobSet in the queue that requests two CPUs.
func queuedRival(w *world) *jobset.JobSet { return queued(w.named("rival", w.replicated("r", 1, 2))) }
