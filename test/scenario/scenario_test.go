package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, SimNodes: 4, SimGPUs: 8, Operator: true})
}

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

const gpu = corev1.ResourceName("nvidia.com/gpu")

// world is a namespace of the shared cluster with a queue of simulated GPUs.
type world struct {
	*testing.T
	client    client.WithWatch
	cluster   *testcluster.Cluster
	namespace string
}

func newWorld(t *testing.T) *world {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, client: c, cluster: cluster, namespace: cluster.Namespace(t)}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.client.Create(w.Context(), o); err != nil {
			w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// gpuQueue makes a ClusterQueue with so many simulated GPUs, its flavor, and a
// LocalQueue of the given name that leads to it. Its name is the namespace's.
func (w *world) gpuQueue(local string, gpus int64) {
	w.Helper()
	w.create(
		&kueue.ResourceFlavor{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
			Spec: kueue.ResourceFlavorSpec{
				NodeLabels:  map[string]string{"muster.dev/simulated": "true"},
				Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
			},
		},
		&kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
			Spec: kueue.ClusterQueueSpec{
				NamespaceSelector: &metav1.LabelSelector{},
				ResourceGroups: []kueue.ResourceGroup{{
					CoveredResources: []corev1.ResourceName{gpu},
					Flavors: []kueue.FlavorQuotas{{
						Name:      kueue.ResourceFlavorReference(w.namespace),
						Resources: []kueue.ResourceQuota{{Name: gpu, NominalQuota: *resource.NewQuantity(gpus, resource.DecimalSI)}},
					}},
				}},
			},
		},
		&kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Name: local, Namespace: w.namespace},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.namespace)},
		},
	)
	w.Cleanup(func() {
		for _, o := range []client.Object{
			&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}},
			&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}},
		} {
			if err := client.IgnoreNotFound(w.client.Delete(context.Background(), o)); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// gang is a JobSet of one Job with so many pods of one GPU each, which run for a
// while on simulated nodes.
func (w *world) gang(name, queue string, pods int32, runs time.Duration) *jobset.JobSet {
	js := &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
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
			w.Fatalf("waited %s until %s", patience, what)
		}
		if open && event.Type == watch.Error {
			continue // the list has the truth
		}
	}
}

func (w *world) untilJobSets(what string, holds func(map[string]jobset.JobSet) bool) {
	w.Helper()
	until(w, &jobset.JobSetList{}, what, func(list *jobset.JobSetList) bool {
		byName := map[string]jobset.JobSet{}
		for _, js := range list.Items {
			byName[js.Name] = js
		}
		return holds(byName)
	})
}

func completed(js jobset.JobSet) bool {
	return meta.IsStatusConditionTrue(js.Status.Conditions, string(jobset.JobSetCompleted))
}

func (w *world) untilCompleted(names ...string) {
	w.Helper()
	w.untilJobSets(fmt.Sprintf("%v have completed", names), func(all map[string]jobset.JobSet) bool {
		for _, name := range names {
			js := all[name]
			if meta.IsStatusConditionTrue(js.Status.Conditions, string(jobset.JobSetFailed)) {
				w.Fatalf("%s failed: %+v", name, js.Status.Conditions)
			}
			if !completed(js) {
				return false
			}
		}
		return true
	})
}

func (w *world) workloads() []kueue.Workload {
	w.Helper()
	var list kueue.WorkloadList
	if err := w.client.List(w.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// operatorPID is the process of the operator that runs now.
func (w *world) operatorPID() int {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.cluster.Dir, "operator.pid"))
	if err != nil {
		w.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		w.Fatal(err)
	}
	return pid
}
