// Package trainingjob tests TrainingJobs on the embedded control plane, with the operator as users run it: sizes,
// stages, times and run policies. The pods run on simulated nodes, and the tests decide when and how they end. Those of
// one training run as processes of this machine.
package trainingjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// On a busy machine pods may be pending for a while: pendingTimeout is longer than that, but short enough for a test of
// stuck pods.
const (
	pendingTimeout = 20 * time.Second
	cooldown       = 2 * time.Second
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, SimNodes: 4, SimGPUs: 8, Operator: true, Config: fmt.Sprintf(`
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
trainingJob: {pendingTimeout: %s, cooldown: %s}
elasticity: {growAfter: 0s, resizeCost: 0s}
`, pendingTimeout, cooldown)})
}

// world is a namespace with TrainingJobs.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// queue creates a ClusterQueue of that many GPUs on simulated nodes, and the LocalQueue default.
func (w *world) queue(gpus int64) {
	w.Helper()
	w.Queue("default", kueue.ResourceFlavorSpec{
		NodeLabels:  map[string]string{"muster.dev/simulated": "true"},
		Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
	}, corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)})
}

// job returns a TrainingJob in the namespace whose pods request one GPU each and run until the test ends them. The
// options are applied to it.
func (w *world) job(name string, least, most int32, options ...func(*breezeml.TrainingJob)) *breezeml.TrainingJob {
	job := &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	job.Spec.MinSize, job.Spec.MaxSize = ptr.To(least), ptr.To(most)
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	job.Spec.ReplicaSpecs.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": "1h"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{Name: "trainingjob", Image: "example.com/trainer", Command: []string{"train"},
				Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
		},
	}
	for _, option := range options {
		option(job)
	}
	return job
}

// priority sets the priority of the job.
func priority(n int32) func(*breezeml.TrainingJob) {
	return func(job *breezeml.TrainingJob) { job.Spec.Priority = n }
}

// untilJob waits until the condition holds for the TrainingJob of this name, and returns it.
func (w *world) untilJob(name, what string, holds func(*breezeml.TrainingJob) bool) *breezeml.TrainingJob {
	w.Helper()
	return harness.UntilOne(w.World, &breezeml.TrainingJobList{}, name, what, holds)
}

// untilStage waits until the job is in the stage with this current size, and returns it.
func (w *world) untilStage(name string, stage breezeml.Stage, size int32) *breezeml.TrainingJob {
	w.Helper()
	return w.untilJob(name, fmt.Sprintf("is %s with size %d", stage, size), func(job *breezeml.TrainingJob) bool {
		return job.Status.Stage == stage && job.Status.CurrentSize == size
	})
}

// untilRuns waits until the status has that many running workers and the job has exactly that many pods, all running.
// It returns the job.
func (w *world) untilRuns(name string, size int32) *breezeml.TrainingJob {
	w.Helper()
	job := w.untilJob(name, fmt.Sprintf("reports %d running workers", size), func(job *breezeml.TrainingJob) bool {
		return job.Status.Stage == breezeml.StageRunning && job.Status.CurrentSize == size &&
			job.Status.ExecStatus.ReplicaStatuses["Worker"].Active == size
	})
	w.untilWorkers(name, size)
	return job
}

// untilWorkers waits until the job has exactly that many pods, all running, and returns their UIDs by name.
func (w *world) untilWorkers(name string, size int32) map[string]types.UID {
	w.Helper()
	return w.UntilSize(breezeml.JobNameLabel, name, int(size))
}

// podsOf returns the names of the job's pods, sorted.
func (w *world) podsOf(name string) []string {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace),
		client.MatchingLabels{breezeml.JobNameLabel: name}); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, pod := range list.Items {
		out = append(out, pod.Name)
	}
	slices.Sort(out)
	return out
}

// end ends the pod of a worker with the exit code, once it runs.
func (w *world) end(name string, code int) {
	w.Helper()
	var pod corev1.Pod
	w.UntilPods(name+" runs", func(pods map[string]corev1.Pod) bool {
		pod = pods[name]
		return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
	})
	w.EndPod(pod, code)
}

// patch changes the TrainingJob of this name by a JSON merge patch.
func (w *world) patch(name, patch string) {
	w.Helper()
	w.Patch(&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}, patch)
}

// isTrue reports whether the job has a true condition of the type.
func isTrue(job *breezeml.TrainingJob, kind breezeml.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.ExecStatus.Conditions, func(c breezeml.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// setActive activates or deactivates the only Workload of the namespace.
func (w *world) setActive(active bool) {
	w.Helper()
	var list kueue.WorkloadList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil || len(list.Items) != 1 {
		w.Fatalf("the namespace has %d Workloads, want 1: %v", len(list.Items), err)
	}
	patch := fmt.Sprintf(`{"spec": {"active": %v}}`, active)
	w.Patch(&list.Items[0], patch)
}
