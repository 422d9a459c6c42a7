// Package trainingjob tests, on the embedded control plane with the operator as users run it, what becomes of
// TrainingJobs: sizes, stages, times and ends. Simulated machines run the pods, whose ends the tests say.
package trainingjob

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// Pods may be pending for a while on a busy machine; whoever is stuck is told so soon enough for a test.
const (
	pendingTimeout = 20 * time.Second
	cooldown       = 2 * time.Second
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 4, SimGPUs: 8, Operator: true, Config: fmt.Sprintf(`
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
trainingJob: {pendingTimeout: %s, cooldown: %s}
`, pendingTimeout, cooldown)})
}

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// world is a namespace of the shared cluster.
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

// queue makes a ClusterQueue named as the namespace with so many GPUs, on simulated machines, and the LocalQueue
// default, which takes in jobs that name none. Jobs of higher priority may take the place of others.
func (w *world) queue(gpus int64) {
	w.Helper()
	objects := []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels:  map[string]string{"muster.dev/simulated": "true"},
			Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
		}},
		&kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
			Spec: kueue.ClusterQueueSpec{
				NamespaceSelector: &metav1.LabelSelector{},
				Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
				ResourceGroups: []kueue.ResourceGroup{{
					CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"},
					Flavors: []kueue.FlavorQuotas{{
						Name:      kueue.ResourceFlavorReference(w.namespace),
						Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: *resource.NewQuantity(gpus, resource.DecimalSI)}},
					}},
				}},
			},
		},
		&kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: w.namespace},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.namespace)},
		},
	}
	w.create(objects...)
	w.Cleanup(func() {
		for _, o := range objects[:2] {
			if err := client.IgnoreNotFound(w.client.Delete(context.Background(), o)); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.client.Create(w.Context(), o); err != nil {
			w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// job is a TrainingJob in the namespace whose pods run until somebody ends them, each with a GPU.
func (w *world) job(name string, least, most int32, options ...func(*breezeml.TrainingJob)) *breezeml.TrainingJob {
	job := &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
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

func priority(n int32) func(*breezeml.TrainingJob) {
	return func(job *breezeml.TrainingJob) { job.Spec.Priority = n }
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
			w.Fatalf("waited %s until %s; it was\n%s", patience, what, w.describe())
		}
		if open && event.Type == watch.Error {
			continue // the list has the truth
		}
	}
}

// describe is what a person would look at who asks why.
func (w *world) describe() string {
	var out strings.Builder
	var jobs breezeml.TrainingJobList
	var pods corev1.PodList
	var workloads kueue.WorkloadList
	for _, list := range []client.ObjectList{&jobs, &pods, &workloads} {
		if err := w.client.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
			return err.Error()
		}
	}
	for _, job := range jobs.Items {
		fmt.Fprintf(&out, "%s: %+v\n", job.Name, job.Status)
	}
	for _, pod := range pods.Items {
		fmt.Fprintf(&out, "%s: %s, going %v, on %q\n", pod.Name, pod.Status.Phase, pod.DeletionTimestamp, pod.Spec.NodeName)
	}
	for _, workload := range workloads.Items {
		fmt.Fprintf(&out, "%s: %+v\n", workload.Name, workload.Status)
	}
	return out.String()
}

// untilJob waits until the condition holds for the job.
func (w *world) untilJob(name, what string, holds func(*breezeml.TrainingJob) bool) *breezeml.TrainingJob {
	w.Helper()
	var found *breezeml.TrainingJob
	until(w, &breezeml.TrainingJobList{}, name+" "+what, func(list *breezeml.TrainingJobList) bool {
		i := slices.IndexFunc(list.Items, func(job breezeml.TrainingJob) bool { return job.Name == name })
		if i < 0 {
			return false
		}
		found = &list.Items[i]
		return holds(found)
	})
	return found
}

// untilStands waits until the job is in the stage, with the size.
func (w *world) untilStands(name string, stage breezeml.Stage, size int32) *breezeml.TrainingJob {
	w.Helper()
	return w.untilJob(name, fmt.Sprintf("is %s with %d", stage, size), func(job *breezeml.TrainingJob) bool {
		return job.Status.Stage == stage && job.Status.CurrentSize == size
	})
}

// untilRuns waits until so many workers of the job run, and there are no other pods of it.
func (w *world) untilRuns(name string, size int32) *breezeml.TrainingJob {
	w.Helper()
	job := w.untilJob(name, fmt.Sprintf("tells of %d workers that run", size), func(job *breezeml.TrainingJob) bool {
		return job.Status.Stage == breezeml.StageRunning && job.Status.CurrentSize == size && job.Status.ExecStatus.ReplicaStatuses["Worker"].Active == size
	})
	until(w, &corev1.PodList{}, fmt.Sprintf("%s has %d pods", name, size), func(list *corev1.PodList) bool {
		var n int32
		for _, pod := range list.Items {
			if pod.Labels[breezeml.JobNameLabel] == name {
				n++
			}
		}
		return n == size
	})
	return job
}

// podsOf are the names of the pods of a job, in order.
func (w *world) podsOf(name string) []string {
	w.Helper()
	var list corev1.PodList
	if err := w.client.List(w.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{breezeml.JobNameLabel: name}); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, pod := range list.Items {
		out = append(out, pod.Name)
	}
	slices.Sort(out)
	return out
}

// end ends the pod of a worker once it runs: with the exit code.
func (w *world) end(name string, code int) {
	w.Helper()
	var pod corev1.Pod
	until(w, &corev1.PodList{}, name+" runs", func(list *corev1.PodList) bool {
		i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return pod.Name == name })
		if i < 0 {
			return false
		}
		pod = list.Items[i]
		return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
	})
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		ended.Status.Phase = corev1.PodFailed
	}
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "trainingjob", Image: "example.com/trainer", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Ended", StartedAt: metav1.Now(), FinishedAt: metav1.Now()}}}}
	if err := w.client.Status().Patch(w.Context(), ended, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("ending %s: %v", name, err)
	}
}

// patch changes a TrainingJob.
func (w *world) patch(name, patch string) {
	w.Helper()
	job := &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	if err := w.client.Patch(w.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("patching %s with %s: %v", name, patch, err)
	}
}

func isTrue(job *breezeml.TrainingJob, kind breezeml.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.ExecStatus.Conditions, func(c breezeml.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
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

// activate deactivates the only Workload of the namespace, or activates it.
func (w *world) activate(is bool) {
	w.Helper()
	var list kueue.WorkloadList
	if err := w.client.List(w.Context(), &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != 1 {
		w.Fatalf("%d Workloads, %v", len(list.Items), err)
	}
	patch := fmt.Sprintf(`{"spec": {"active": %v}}`, is)
	if err := w.client.Patch(w.Context(), &list.Items[0], client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatal(err)
	}
}
