// Package genericjob tests GenericJobs on the embedded control plane, with the operator as users run it: finish rules,
// restart budgets, clean-up policies, run modes, queues and placement. The pods run on simulated nodes, and the tests
// decide when and how they end.
package genericjob

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 4, SimGPUs: 8, Operator: true, Config: harness.ResizeAtOnce})
}

// endless is the simulated duration of pods that run until the test ends them.
const endless = "1h"

// world is a namespace with GenericJobs.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// queue creates a ClusterQueue with a quota of that many pods, named after the namespace, and the LocalQueue q.
func (w *world) queue(pods int64) {
	w.Helper()
	w.Queue("q", kueue.ResourceFlavorSpec{},
		corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)})
}

// annotateQueue sets an annotation of the ClusterQueue of this name, which must have one flavor.
func (w *world) annotateQueue(name, key, value string) {
	w.Helper()
	w.ChangeQueue(name, func(q *kueue.ClusterQueue) {
		metav1.SetMetaDataAnnotation(&q.ObjectMeta, key, value)
		// With a single flavor this has no effect but a new generation, whose observation shows that the operator has
		// the annotation too.
		next := kueue.TryNextFlavor
		if f := q.Spec.FlavorFungibility; f != nil && f.WhenCanBorrow == next {
			next = kueue.Borrow
		}
		q.Spec.FlavorFungibility = &kueue.FlavorFungibility{WhenCanBorrow: next}
	})
}

// job returns a GenericJob in the namespace, with the options applied.
func (w *world) job(name string, options ...func(*tensorstack.GenericJob)) *tensorstack.GenericJob {
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	for _, option := range options {
		option(job)
	}
	return job
}

// with adds a replica type whose pods run until the test ends them. Each replica may be restarted on failure up to
// restarts times.
func with(replicaType string, count, restarts int32) func(*tensorstack.GenericJob) {
	return withPolicy(replicaType, count, tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: restarts})
}

// withPolicy adds a replica type as with does, with any restart policy.
func withPolicy(replicaType string, count int32, policy tensorstack.RestartPolicy) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		job.Spec.ReplicaSpecs = append(job.Spec.ReplicaSpecs, tensorstack.ReplicaSpec{
			Type: replicaType, Replicas: ptr.To(count), RestartPolicy: policy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": endless}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated",
						Operator: corev1.TolerationOpExists}},
					InitContainers: []corev1.Container{{Name: "fetch", Image: "example.com/fetch"}},
					Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer", Command: []string{"train"},
						Args: []string{"--rank", "$(rank)"}}},
				},
			},
		})
	}
}

// inQueue puts the job into the LocalQueue q, with the priority.
func inQueue(priority int32) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: "q",
			Priority: priority}}
	}
}

// onGPUs makes each pod request that many GPUs.
func onGPUs(amount int64) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		requests := corev1.ResourceList{gpu: *resource.NewQuantity(amount, resource.DecimalSI)}
		for i := range job.Spec.ReplicaSpecs {
			job.Spec.ReplicaSpecs[i].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests,
				Limits: requests}
		}
	}
}

// annotated sets the annotation on all pod templates of the job.
func annotated(key, value string) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		for i := range job.Spec.ReplicaSpecs {
			metav1.SetMetaDataAnnotation(&job.Spec.ReplicaSpecs[i].Template.ObjectMeta, key, value)
		}
	}
}

const gpu = corev1.ResourceName("nvidia.com/gpu")

// onSimulated is the flavor of the simulated nodes.
var onSimulated = kueue.ResourceFlavorSpec{
	NodeLabels:  map[string]string{"muster.dev/simulated": "true"},
	Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
}

// untilJob waits until the condition holds for the GenericJob of this name, and returns it.
func (w *world) untilJob(name, what string, holds func(*tensorstack.GenericJob) bool) *tensorstack.GenericJob {
	w.Helper()
	return harness.UntilOne(w.World, &tensorstack.GenericJobList{}, name, what, holds)
}

// untilPhase waits until the GenericJob of this name is in the phase, and returns it.
func (w *world) untilPhase(name string, phase tensorstack.JobPhase) *tensorstack.GenericJob {
	w.Helper()
	return w.untilJob(name, "is "+string(phase),
		func(job *tensorstack.GenericJob) bool { return job.Status.Phase == phase })
}

// untilAnotherJobRuns creates a job with a queue of its own in another namespace, and waits until it runs. Tests use it
// before they check that the operator has not done something: what it would do has been done by then.
func untilAnotherJobRuns(t *testing.T) {
	t.Helper()
	other := newWorld(t)
	other.queue(1)
	other.Create(other.job("another", with("worker", 1, 0), inQueue(0)))
	other.untilPhase("another", tensorstack.JobPhaseRunning)
}

// uids returns the UIDs of all pods by name, to tell later whether a pod was recreated.
func (w *world) uids() map[string]types.UID {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	out := map[string]types.UID{}
	for _, pod := range list.Items {
		out[pod.Name] = pod.UID
	}
	return out
}

// podsOf returns the pods of the job.
func (w *world) podsOf(job string) []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace),
		client.MatchingLabels{tensorstack.GenericJobLabel: job}); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// untilPodsOf waits until the job has exactly the pods of these names, which must be sorted.
func (w *world) untilPodsOf(job string, names ...string) {
	w.Helper()
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("the pods of %s are %v", job, names),
		func(*corev1.PodList) bool {
			return slices.EqualFunc(w.podsOf(job), names, func(pod corev1.Pod, name string) bool { return pod.Name == name })
		})
}

// pause pauses the GenericJob of this name, or resumes it if enabled is false.
func (w *world) pause(name string, enabled bool) {
	w.Helper()
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Patch(job, fmt.Sprintf(`{"spec":{"runMode":{"pause":{"enabled":%v}}}}`, enabled))
}

// condition returns the job's condition of the type, zero if it has none.
func condition(job *tensorstack.GenericJob, kind tensorstack.JobConditionType) tensorstack.JobCondition {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return tensorstack.JobCondition{}
}
