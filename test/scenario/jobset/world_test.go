// Package jobset tests JobSets on the embedded control plane. It has no nodes: the tests set the statuses of the pods.
package jobset

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Operator: true}) }

// world is a namespace with JobSets.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Parallel()
	return &world{harness.New(t)}
}

// set returns the JobSet js with one leader Job of one pod and two worker Jobs of two pods.
func (w *world) set() *jobset.JobSet {
	return w.named("js", w.replicated("leader", 1, 1), w.replicated("workers", 2, 2))
}

// named returns a JobSet of this name in the namespace.
func (w *world) named(name string, replicated ...jobset.ReplicatedJob) *jobset.JobSet {
	return &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: jobset.JobSetSpec{ReplicatedJobs: replicated}}
}

// replicated returns a replicated job of that many Jobs, each of that many pods, which request one CPU each.
func (w *world) replicated(name string, replicas, pods int32) jobset.ReplicatedJob {
	return jobset.ReplicatedJob{Name: name, Replicas: replicas, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Parallelism: &pods, Completions: &pods, BackoffLimit: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
		}},
	}}}
}

// untilJobSet waits until the condition holds for the JobSet of this name, and returns it.
func (w *world) untilJobSet(name, what string, holds func(*jobset.JobSet) bool) *jobset.JobSet {
	w.Helper()
	return harness.UntilOne(w.World, &jobset.JobSetList{}, name, what, holds)
}

// untilJobs waits until the condition holds for the Jobs by name, and returns them. what follows "the Jobs" in the
// failure message.
func (w *world) untilJobs(what string, holds func(map[string]batchv1.Job) bool) map[string]batchv1.Job {
	w.Helper()
	var byName map[string]batchv1.Job
	harness.Until(w.World, &batchv1.JobList{}, "the Jobs "+what, func(list *batchv1.JobList) bool {
		byName = map[string]batchv1.Job{}
		for _, job := range list.Items {
			byName[job.Name] = job
		}
		return holds(byName)
	})
	return byName
}

// untilOnlyJobs waits until the namespace has exactly the Jobs of these names, and returns them by name.
func (w *world) untilOnlyJobs(names ...string) map[string]batchv1.Job {
	w.Helper()
	return w.untilJobs(fmt.Sprintf("are %v", names), func(jobs map[string]batchv1.Job) bool {
		for _, name := range names {
			if _, ok := jobs[name]; !ok {
				return false
			}
		}
		return len(jobs) == len(names)
	})
}

// run waits until the Jobs have all their pods, and makes these run and ready.
func (w *world) run(jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		for _, pod := range w.podsOf(name) {
			w.SetPodStatus(pod, corev1.PodRunning, 0)
		}
	}
}

// succeed waits until the Jobs have all their pods, and makes these succeed.
func (w *world) succeed(jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		for _, pod := range w.podsOf(name) {
			w.SetPodStatus(pod, corev1.PodSucceeded, 0)
		}
	}
}

// fail makes one pod of each Job fail with the exit code.
func (w *world) fail(exitCode int32, jobs ...string) {
	w.Helper()
	for _, name := range jobs {
		w.SetPodStatus(w.podsOf(name)[0], corev1.PodFailed, exitCode)
	}
}

// podsOf waits until the Job of this name is not suspended and has all its pods, and returns these.
func (w *world) podsOf(job string) []corev1.Pod {
	w.Helper()
	var owner *batchv1.Job
	w.untilJobs("include "+job+", which is not suspended", func(jobs map[string]batchv1.Job) bool {
		found, ok := jobs[job]
		owner = &found
		return ok && found.DeletionTimestamp.IsZero() && !*found.Spec.Suspend
	})
	var pods []corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, "Job "+job+" has all its pods", func(list *corev1.PodList) bool {
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

// expectMessage fails the test unless the JobSet's condition of the type has this message.
func (w *world) expectMessage(js *jobset.JobSet, kind jobset.JobSetConditionType, want string) {
	w.Helper()
	if got := meta.FindStatusCondition(js.Status.Conditions, string(kind)).Message; got != want {
		w.Errorf("message of the condition %s = %q, want %q", kind, got, want)
	}
}

// counts reports whether the status has these numbers of ready, succeeded, failed, active and suspended Jobs of the
// replicated job.
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

// queue creates a ClusterQueue with the flavors, named after their pools, each with its CPU quota, and the LocalQueue
// q.
func (w *world) queue(flavors map[string]string) {
	w.Helper()
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups:    []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}}}}}
	for _, pool := range slices.Sorted(maps.Keys(flavors)) {
		name := w.Namespace + "-" + pool
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels:  map[string]string{"pool": pool},
			Tolerations: []corev1.Toleration{{Key: pool, Operator: corev1.TolerationOpExists}}}}
		w.Shared(flavor)
		queue.Spec.ResourceGroups[0].Flavors = append(queue.Spec.ResourceGroups[0].Flavors,
			kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(name),
				Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(flavors[pool])}}})
	}
	w.Shared(queue)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "q"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
}

// queued labels the JobSet for the queue q.
func queued(js *jobset.JobSet) *jobset.JobSet {
	js.Labels = map[string]string{kueue.QueueLabel: "q"}
	return js
}
