// Package jobset tests, on the embedded control plane, what becomes of JobSets. There are no nodes: the tests say what
// becomes of the pods.
package jobset

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Operator: true}) }

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// world is a namespace of the shared cluster.
type world struct {
	*testing.T
	client    client.WithWatch
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, client: c, namespace: cluster.Namespace(t)}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.client.Create(w.Context(), o); err != nil {
			w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// patch changes an object by a merge patch.
func (w *world) patch(o client.Object, text string) {
	w.Helper()
	o.SetNamespace(w.namespace)
	if err := w.client.Patch(w.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		w.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
}

func (w *world) delete(o client.Object) {
	w.Helper()
	o.SetNamespace(w.namespace)
	if err := w.client.Delete(w.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.Fatalf("deleting %T %s: %v", o, o.GetName(), err)
	}
}

// set is the JobSet js with a leader and two workers, whose Jobs have one pod and two.
func (w *world) set() *jobset.JobSet {
	return w.named("js", w.replicated("leader", 1, 1), w.replicated("workers", 2, 2))
}

func (w *world) named(name string, replicated ...jobset.ReplicatedJob) *jobset.JobSet {
	return &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: jobset.JobSetSpec{ReplicatedJobs: replicated}}
}

// replicated has so many Jobs of so many pods, each of which asks for a CPU.
func (w *world) replicated(name string, replicas, pods int32) jobset.ReplicatedJob {
	return jobset.ReplicatedJob{Name: name, Replicas: replicas, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Parallelism: &pods, Completions: &pods, BackoffLimit: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
		}},
	}}}
}

// until waits, by watching the list, until the condition holds for its items.
func until[L client.ObjectList](w *world, list L, what string, holds func(L) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		if holds(list) {
			return
		}
		events, err := w.client.Watch(ctx, list, client.InNamespace(w.namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		event, open := <-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			w.Fatalf("waited %s until %s; it is %+v", patience, what, list)
		}
		if open && event.Type == watch.Error {
			continue // the list has the truth
		}
	}
}

// jobSet waits until the JobSet is so, and gives it.
func (w *world) jobSet(name, what string, holds func(*jobset.JobSet) bool) *jobset.JobSet {
	w.Helper()
	var found *jobset.JobSet
	until(w, &jobset.JobSetList{}, name+" "+what, func(list *jobset.JobSetList) bool {
		for i := range list.Items {
			if list.Items[i].Name == name && holds(&list.Items[i]) {
				found = list.Items[i].DeepCopy()
			}
		}
		return found != nil
	})
	return found
}

// jobs waits until the Jobs are so, and gives them by name.
func (w *world) jobs(what string, hold func(map[string]batchv1.Job) bool) map[string]batchv1.Job {
	w.Helper()
	var byName map[string]batchv1.Job
	until(w, &batchv1.JobList{}, "the Jobs "+what, func(list *batchv1.JobList) bool {
		byName = map[string]batchv1.Job{}
		for _, job := range list.Items {
			byName[job.Name] = job
		}
		return hold(byName)
	})
	return byName
}

// thereAre waits until there are exactly the Jobs of these names.
func (w *world) thereAre(names ...string) map[string]batchv1.Job {
	w.Helper()
	return w.jobs(fmt.Sprintf("are %v", names), func(jobs map[string]batchv1.Job) bool {
		for _, name := range names {
			if _, ok := jobs[name]; !ok {
				return false
			}
		}
		return len(jobs) == len(names)
	})
}

// run has all pods of the Jobs run and be ready, as soon as they are there.
func (w *world) run(jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		for _, pod := range w.podsOf(name) {
			w.podIs(pod, corev1.PodRunning, 0)
		}
	}
}

// succeed has all pods of the Jobs succeed, and fail has one of each fail with the exit code.
func (w *world) succeed(jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		for _, pod := range w.podsOf(name) {
			w.podIs(pod, corev1.PodSucceeded, 0)
		}
	}
}

func (w *world) fail(exitCode int32, jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		w.podIs(w.podsOf(name)[0], corev1.PodFailed, exitCode)
	}
}

// podsOf are the pods of the present Job of the name, once all of them are there.
func (w *world) podsOf(job string) []corev1.Pod {
	w.Helper()
	var owner *batchv1.Job
	w.jobs(job+" is there and may run", func(jobs map[string]batchv1.Job) bool {
		found, ok := jobs[job]
		owner = &found
		return ok && found.DeletionTimestamp.IsZero() && !*found.Spec.Suspend
	})
	var pods []corev1.Pod
	until(w, &corev1.PodList{}, "pods of "+job+" are there", func(list *corev1.PodList) bool {
		pods = nil
		for _, pod := range list.Items {
			if metav1.IsControlledBy(&pod, owner) && pod.DeletionTimestamp.IsZero() {
				pods = append(pods, pod)
			}
		}
		return len(pods) == int(*owner.Spec.Parallelism)
	})
	return pods
}

// podIs is what a kubelet would say of a pod.
func (w *world) podIs(pod corev1.Pod, phase corev1.PodPhase, exitCode int32) {
	w.Helper()
	after := pod.DeepCopy()
	now := metav1.Now()
	after.Status.Phase = phase
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, StartedAt: now, FinishedAt: now}}
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		state, ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}, corev1.ConditionTrue
	}
	after.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state, Ready: phase == corev1.PodRunning}}
	after.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: now}}
	if err := w.client.Status().Patch(w.Context(), after, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("setting the state of pod %s: %v", pod.Name, err)
	}
}

// is reports whether the JobSet has the condition with the status and reason.
func is(kind jobset.JobSetConditionType, status metav1.ConditionStatus, reason string) func(*jobset.JobSet) bool {
	return func(js *jobset.JobSet) bool {
		c := meta.FindStatusCondition(js.Status.Conditions, string(kind))
		return c != nil && c.Status == status && c.Reason == reason
	}
}

// counts are the numbers of an entry of the status: ready, succeeded, failed, active, suspended.
func counts(name string, want ...int32) func(*jobset.JobSet) bool {
	return func(js *jobset.JobSet) bool {
		for _, s := range js.Status.ReplicatedJobsStatus {
			if s.Name == name {
				return slices.Equal(want, []int32{s.Ready, s.Succeeded, s.Failed, s.Active, s.Suspended})
			}
		}
		return false
	}
}

// event waits for an event about an object, and gives it.
func (w *world) event(about, reason string) eventsv1.Event {
	w.Helper()
	var found *eventsv1.Event
	until(w, &eventsv1.EventList{}, about+" is told "+reason, func(list *eventsv1.EventList) bool {
		for i := range list.Items {
			if list.Items[i].Regarding.Name == about && list.Items[i].Reason == reason {
				found = list.Items[i].DeepCopy()
			}
		}
		return found != nil
	})
	return *found
}

// queue makes a ClusterQueue of so many CPUs with a flavor of the name for each label value, and the LocalQueue q.
func (w *world) queue(flavors map[string]string) {
	w.Helper()
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}}}}}
	names := make([]string, 0, len(flavors))
	for pool := range flavors {
		names = append(names, pool)
	}
	slices.Sort(names)
	owned := []client.Object{queue}
	for _, pool := range names {
		name := w.namespace + "-" + pool
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{"pool": pool}, Tolerations: []corev1.Toleration{{Key: pool, Operator: corev1.TolerationOpExists}}}}
		w.create(flavor)
		owned = append(owned, flavor)
		queue.Spec.ResourceGroups[0].Flavors = append(queue.Spec.ResourceGroups[0].Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(name),
			Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(flavors[pool])}}})
	}
	w.create(queue, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "q"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.namespace)}})
	w.Cleanup(func() {
		for _, o := range owned {
			if err := w.client.Delete(context.Background(), o); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// queued labels the JobSet for the queue q.
func queued(js *jobset.JobSet) *jobset.JobSet {
	js.Labels = map[string]string{kueue.QueueLabel: "q"}
	return js
}

// workload waits until the Workload of the JobSet js is so, and gives it.
func (w *world) workload(what string, holds func(*kueue.Workload) bool) *kueue.Workload {
	w.Helper()
	var found *kueue.Workload
	until(w, &kueue.WorkloadList{}, "the Workload "+what, func(list *kueue.WorkloadList) bool {
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Name == "js" && holds(&list.Items[i]) {
				found = list.Items[i].DeepCopy()
			}
		}
		return found != nil
	})
	return found
}
