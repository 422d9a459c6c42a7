// Package vcjob tests the Jobs of batch.volcano.sh without Volcano, on the embedded control plane with the operator as
// users run it. The pods run on simulated nodes, and the tests decide when and how they end.
package vcjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 4, SimGPUs: 8, ExecNodes: 1, Operator: true,
		Config: harness.ResizeAtOnce})
}

// endless is the simulated duration of pods that run until the test ends them.
const endless = "1h"

// world is a namespace with VCJobs.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// queue creates a ClusterQueue with a quota of that many pods, named after the namespace, and the LocalQueue q.
func (w *world) queue(pods int64) {
	w.Helper()
	w.Queue("q", kueue.ResourceFlavorSpec{},
		corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)})
}

// queueOnNodes creates so many nodes of 8 GPUs for the test alone, and the LocalQueue q. The ClusterQueue of q assigns
// pods to these nodes, and has quota for more pods than the nodes hold.
func (w *world) queueOnNodes(nodes int) {
	w.Helper()
	level := kueue.TopologyLevel{NodeLabel: corev1.LabelHostname}
	w.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{level}}})
	own := map[string]string{"muster.dev/simulated": "true", "example.com/pool": w.Namespace}
	for i := range nodes {
		w.Node(fmt.Sprintf("node-%d", i), own, corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti"),
			corev1.ResourcePods: resource.MustParse("110"),
			"nvidia.com/gpu":    resource.MustParse("8"),
		}, corev1.Taint{Key: "example.com/pool", Value: w.Namespace, Effect: corev1.TaintEffectNoSchedule})
	}
	w.Queue("q", kueue.ResourceFlavorSpec{
		NodeLabels: own, TopologyName: ptr.To(kueue.TopologyReference(w.Namespace)),
		Tolerations: []corev1.Toleration{{Key: "example.com/pool", Operator: corev1.TolerationOpExists}},
	}, corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("100")})
}

// job returns a VCJob in the namespace, with the options applied.
func (w *world) job(name string, options ...func(*volcano.Job)) *volcano.Job {
	job := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: volcano.JobSpec{Queue: "q", SchedulerName: "volcano"}}
	for _, option := range options {
		option(job)
	}
	return job
}

// with adds a task whose pods succeed after the duration, unless the test ends them before. The changes are applied to
// the task.
func with(name string, count int32, duration string, change ...func(*volcano.TaskSpec)) func(*volcano.Job) {
	return func(job *volcano.Job) {
		task := volcano.TaskSpec{Name: name, Replicas: count, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": duration}},
			Spec: corev1.PodSpec{
				RestartPolicy:                 corev1.RestartPolicyNever,
				NodeSelector:                  map[string]string{"muster.dev/simulated": "true"},
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated",
					Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}},
			},
		}}
		for _, f := range change {
			f(&task)
		}
		job.Spec.Tasks = append(job.Spec.Tasks, task)
	}
}

// on adds a policy: on the event, the action is taken.
func on(event bus.Event, action bus.Action) func(*volcano.Job) {
	return func(job *volcano.Job) {
		job.Spec.Policies = append(job.Spec.Policies, volcano.LifecyclePolicy{Event: event, Action: action})
	}
}

// commandJob creates a Command for the job, as vcctl does, except that the Command has no owner.
func (w *world) commandJob(job *volcano.Job, action bus.Action) {
	w.Helper()
	w.createCommand(action, metav1.NewControllerRef(job, volcano.GroupVersion.WithKind("Job")))
}

// createCommand creates a Command for the target.
func (w *world) createCommand(action bus.Action, target *metav1.OwnerReference) {
	w.Helper()
	w.Create(&bus.Command{ObjectMeta: metav1.ObjectMeta{GenerateName: "command-", Namespace: w.Namespace}, Action: action,
		TargetObject: target})
}

// untilJob waits until the condition holds for the VCJob of this name, and returns it.
func (w *world) untilJob(name, what string, holds func(*volcano.Job) bool) *volcano.Job {
	w.Helper()
	return harness.UntilOne(w.World, &volcano.JobList{}, name, what, holds)
}

// untilPhase waits until the VCJob of this name is in the phase, and returns it.
func (w *world) untilPhase(name string, phase volcano.JobPhase) *volcano.Job {
	w.Helper()
	return w.untilJob(name, "is "+string(phase), func(job *volcano.Job) bool { return job.Status.State.Phase == phase })
}
