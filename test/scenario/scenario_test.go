package scenario

import (
	"fmt"
	"testing"
	"time"

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

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, SimNodes: 4, SimGPUs: 8, Operator: true, Config: fastStatus})
}

// fastStatus makes the operator update the status of queues promptly, because many tests wait for it.
const fastStatus = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
queueStatus: {interval: 100ms}
`

const gpu = corev1.ResourceName("nvidia.com/gpu")

// simulated is the spec of a flavor whose pods run on the simulated nodes.
var simulated = kueue.ResourceFlavorSpec{
	NodeLabels:  map[string]string{"muster.dev/simulated": "true"},
	Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
}

// world is a namespace with a queue of simulated GPUs.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// gpuQueue creates a ClusterQueue with that many simulated GPUs and its flavor, both named after the namespace, and a
// LocalQueue of the given name that points to it.
func (w *world) gpuQueue(local string, gpus int64, edits ...func(*kueue.ClusterQueueSpec)) {
	w.Helper()
	w.Queue(local, simulated, corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}, edits...)
}

// gang returns a JobSet of one Job with that many pods of one GPU each, which run for that long on simulated nodes.
func (w *world) gang(name, queue string, pods int32, runs time.Duration) *jobset.JobSet {
	js := &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To(pods), Completions: ptr.To(pods), BackoffLimit: ptr.To[int32](0),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": runs.String()}},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{
							Name: "main", Image: "example.com/trainer", Command: []string{"train"},
							Resources: corev1.ResourceRequirements{
								Requests: corev1.ResourceList{gpu: resource.MustParse("1")},
								Limits:   corev1.ResourceList{gpu: resource.MustParse("1")},
							},
						}},
					},
				},
			}},
		}}},
	}
	if queue != "" {
		js.Labels = map[string]string{kueue.QueueLabel: queue}
	}
	return js
}

// untilJobSets waits until the condition holds for the JobSets, keyed by name.
func (w *world) untilJobSets(what string, holds func(map[string]jobset.JobSet) bool) {
	w.Helper()
	harness.Until(w.World, &jobset.JobSetList{}, what, func(list *jobset.JobSetList) bool {
		byName := map[string]jobset.JobSet{}
		for _, js := range list.Items {
			byName[js.Name] = js
		}
		return holds(byName)
	})
}

// jobSetCompleted reports whether a JobSet has completed successfully.
func jobSetCompleted(js jobset.JobSet) bool {
	return meta.IsStatusConditionTrue(js.Status.Conditions, string(jobset.JobSetCompleted))
}

// untilCompleted waits until the JobSets of these names have completed. It fails the test at once if one of them fails.
func (w *world) untilCompleted(names ...string) {
	w.Helper()
	w.untilJobSets(fmt.Sprintf("the JobSets %v have completed", names), func(all map[string]jobset.JobSet) bool {
		for _, name := range names {
			js := all[name]
			if meta.IsStatusConditionTrue(js.Status.Conditions, string(jobset.JobSetFailed)) {
				w.Fatalf("JobSet %s failed: %+v", name, js.Status.Conditions)
			}
			if !jobSetCompleted(js) {
				return false
			}
		}
		return true
	})
}

// workloads returns the Workloads of the namespace.
func (w *world) workloads() []kueue.Workload {
	w.Helper()
	var list kueue.WorkloadList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	return list.Items
}
