// Package jobset tests, on the embedded control plane, what becomes of JobSets. There are no nodes: the tests say what
// becomes of the pods.
package jobset

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Operator: true}) }

// world is a namespace with JobSets.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Parallel()
	return &world{harness.New(t)}
}

// set is the JobSet js with a leader and two workers, whose Jobs have one pod and two.
func (w *world) set() *jobset.JobSet {
	return w.named("js", w.replicated("leader", 1, 1), w.replicated("workers", 2, 2))
}

func (w *world) named(name string, replicated ...jobset.ReplicatedJob) *jobset.JobSet {
	return &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, Spec: jobset.JobSetSpec{ReplicatedJobs: replicated}}
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

// jobSet waits until the JobSet is so, and gives it.
func (w *world) jobSet(name, what string, holds func(*jobset.JobSet) bool) *jobset.JobSet {
	w.Helper()
	return harness.UntilOne(w.World, &jobset.JobSetList{}, name, what, holds)
}

// jobs waits until the Jobs are so, and gives them by name.
func (w *world) jobs(what string, hold func(map[string]batchv1.Job) bool) map[string]batchv1.Job {
	w.Helper()
	var byName map[string]batchv1.Job
	harness.Until(w.World, &batchv1.JobList{}, "the Jobs "+what, func(list *batchv1.JobList) bool {
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
			w.SetPodStatus(pod, corev1.PodRunning, 0)
		}
	}
}

// succeed has all pods of the Jobs succeed, and fail has one of each fail with the exit code.
func (w *world) succeed(jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		for _, pod := range w.podsOf(name) {
			w.SetPodStatus(pod, corev1.PodSucceeded, 0)
		}
	}
}

func (w *world) fail(exitCode int32, jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		w.SetPodStatus(w.podsOf(name)[0], corev1.PodFailed, exitCode)
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
	harness.Until(w.World, &corev1.PodList{}, "pods of "+job+" are there", func(list *corev1.PodList) bool {
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

// queue makes a ClusterQueue of so many CPUs with a flavor of the name for each label value, and the LocalQueue q.
func (w *world) queue(flavors map[string]string) {
	w.Helper()
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}}}}}
	names := make([]string, 0, len(flavors))
	for pool := range flavors {
		names = append(names, pool)
	}
	slices.Sort(names)
	owned := []client.Object{queue}
	for _, pool := range names {
		name := w.Namespace + "-" + pool
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{"pool": pool}, Tolerations: []corev1.Toleration{{Key: pool, Operator: corev1.TolerationOpExists}}}}
		w.Create(flavor)
		owned = append(owned, flavor)
		queue.Spec.ResourceGroups[0].Flavors = append(queue.Spec.ResourceGroups[0].Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(name),
			Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(flavors[pool])}}})
	}
	w.Create(queue, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "q"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
	w.Cleanup(func() {
		for _, o := range owned {
			if err := w.Client.Delete(context.Background(), o); err != nil {
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
