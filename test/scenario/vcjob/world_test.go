// Package vcjob tests, on the embedded control plane with the operator as users run it, what becomes of the Jobs of
// batch.volcano.sh where Volcano is not there. Simulated machines run the pods, whose ends the tests say.
package vcjob

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 4, SimGPUs: 8, ExecNodes: 1, Operator: true, Config: `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
elasticity:
  growAfter: 0s
  resizeCost: 0s
`})
}

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// endless is how long pods run that nobody ends.
const endless = "1h"

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

// queue makes a ClusterQueue named as the namespace with so many pods, on simulated machines, and the LocalQueue q.
func (w *world) queue(pods int64) {
	w.Helper()
	objects := []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}},
		&kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
			Spec: kueue.ClusterQueueSpec{
				NamespaceSelector: &metav1.LabelSelector{},
				ResourceGroups: []kueue.ResourceGroup{{
					CoveredResources: []corev1.ResourceName{corev1.ResourcePods},
					Flavors: []kueue.FlavorQuotas{{
						Name:      kueue.ResourceFlavorReference(w.namespace),
						Resources: []kueue.ResourceQuota{{Name: corev1.ResourcePods, NominalQuota: *resource.NewQuantity(pods, resource.DecimalSI)}},
					}},
				}},
			},
		},
		&kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: w.namespace},
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

// job is a VCJob in the namespace, made of what the options say.
func (w *world) job(name string, options ...func(*volcano.Job)) *volcano.Job {
	job := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: volcano.JobSpec{Queue: "q", SchedulerName: "volcano"}}
	for _, option := range options {
		option(job)
	}
	return job
}

// with is a task whose pods run for as long, or until somebody ends them.
func with(name string, count int32, duration string, change ...func(*volcano.TaskSpec)) func(*volcano.Job) {
	return func(job *volcano.Job) {
		task := volcano.TaskSpec{Name: name, Replicas: count, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": duration}},
			Spec: corev1.PodSpec{
				RestartPolicy:                 corev1.RestartPolicyNever,
				NodeSelector:                  map[string]string{"muster.dev/simulated": "true"},
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Tolerations:                   []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
				Containers:                    []corev1.Container{{Name: "main", Image: "example.com/trainer"}},
			},
		}}
		for _, f := range change {
			f(&task)
		}
		job.Spec.Tasks = append(job.Spec.Tasks, task)
	}
}

func on(event bus.Event, action bus.Action) func(*volcano.Job) {
	return func(job *volcano.Job) {
		job.Spec.Policies = append(job.Spec.Policies, volcano.LifecyclePolicy{Event: event, Action: action})
	}
}

// ask makes a Command for the job, as vcctl does but for the owner.
func (w *world) ask(job *volcano.Job, action bus.Action) {
	w.Helper()
	w.create(&bus.Command{ObjectMeta: metav1.ObjectMeta{GenerateName: "ask-", Namespace: w.namespace}, Action: action,
		TargetObject: metav1.NewControllerRef(job, volcano.GroupVersion.WithKind("Job"))})
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
	var jobs volcano.JobList
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
		fmt.Fprintf(&out, "%s: %+v\n", workload.Name, workload.Status.Conditions)
	}
	return out.String()
}

// untilJob waits until the condition holds for the job.
func (w *world) untilJob(name, what string, holds func(*volcano.Job) bool) *volcano.Job {
	w.Helper()
	var found *volcano.Job
	until(w, &volcano.JobList{}, name+" "+what, func(list *volcano.JobList) bool {
		i := slices.IndexFunc(list.Items, func(job volcano.Job) bool { return job.Name == name })
		if i < 0 {
			return false
		}
		found = &list.Items[i]
		return holds(found)
	})
	return found
}

func (w *world) untilPhase(name string, phase volcano.JobPhase) *volcano.Job {
	w.Helper()
	return w.untilJob(name, "is "+string(phase), func(job *volcano.Job) bool { return job.Status.State.Phase == phase })
}

// untilPods waits until the condition holds for the pods by their names.
func (w *world) untilPods(what string, holds func(map[string]corev1.Pod) bool) {
	w.Helper()
	until(w, &corev1.PodList{}, what, func(list *corev1.PodList) bool {
		byName := map[string]corev1.Pod{}
		for _, pod := range list.Items {
			byName[pod.Name] = pod
		}
		return holds(byName)
	})
}

// untilOnly waits until these are all the pods there are.
func (w *world) untilOnly(names ...string) {
	w.Helper()
	w.untilPods(fmt.Sprintf("the pods are %v", names), func(pods map[string]corev1.Pod) bool {
		for _, name := range names {
			if _, ok := pods[name]; !ok {
				return false
			}
		}
		return len(pods) == len(names)
	})
}

// end ends the pod of a replica, of the attempt, once it runs: with the exit code.
func (w *world) end(name string, attempt int, code int) {
	w.Helper()
	var pod corev1.Pod
	w.untilPods(fmt.Sprintf("%s runs in attempt %d", name, attempt), func(pods map[string]corev1.Pod) bool {
		pod = pods[name]
		return pod.Annotations["muster.dev/restarts"] == strconv.Itoa(attempt) && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
	})
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		ended.Status.Phase = corev1.PodFailed
	}
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "example.com/trainer", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Ended", StartedAt: metav1.Now(), FinishedAt: metav1.Now()}}}}
	if err := w.client.Status().Patch(w.Context(), ended, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("ending %s: %v", name, err)
	}
}

func (w *world) delete(o client.Object) {
	w.Helper()
	if err := w.client.Delete(w.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.Fatalf("deleting %s: %v", o.GetName(), err)
	}
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
