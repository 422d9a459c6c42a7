// Package genericjob tests, on the embedded control plane with the operator as users run it, what becomes of GenericJobs:
// every rule, restart budget, clean-up policy and change of mode. Simulated machines run the pods, whose ends the tests
// say.
package genericjob

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 4, SimGPUs: 8, Operator: true})
}

// endless is how long pods run that nobody ends.
const endless = "1h"

// world is a namespace with GenericJobs.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// queue makes a ClusterQueue named as the namespace with so many pods, on simulated machines, and the LocalQueue q.
func (w *world) queue(pods int64) {
	w.Helper()
	objects := []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
		&kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
			Spec: kueue.ClusterQueueSpec{
				NamespaceSelector: &metav1.LabelSelector{},
				ResourceGroups: []kueue.ResourceGroup{{
					CoveredResources: []corev1.ResourceName{corev1.ResourcePods},
					Flavors: []kueue.FlavorQuotas{{
						Name:      kueue.ResourceFlavorReference(w.Namespace),
						Resources: []kueue.ResourceQuota{{Name: corev1.ResourcePods, NominalQuota: *resource.NewQuantity(pods, resource.DecimalSI)}},
					}},
				}},
			},
		},
		&kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: w.Namespace},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)},
		},
	}
	w.Create(objects...)
	w.Cleanup(func() {
		for _, o := range objects[:2] {
			if err := client.IgnoreNotFound(w.Client.Delete(context.Background(), o)); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// job is a GenericJob in the namespace, made of what the options say.
func (w *world) job(name string, options ...func(*tensorstack.GenericJob)) *tensorstack.GenericJob {
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	for _, option := range options {
		option(job)
	}
	return job
}

// with is a type of replicas whose pods run until somebody ends them; restarts is how often each may be restarted.
func with(replicaType string, count, restarts int32) func(*tensorstack.GenericJob) {
	return withPolicy(replicaType, count, tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: restarts})
}

func withPolicy(replicaType string, count int32, policy tensorstack.RestartPolicy) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		job.Spec.ReplicaSpecs = append(job.Spec.ReplicaSpecs, tensorstack.ReplicaSpec{
			Type: replicaType, Replicas: ptr.To(count), RestartPolicy: policy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": endless}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					Tolerations:                   []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
					InitContainers:                []corev1.Container{{Name: "fetch", Image: "example.com/fetch"}},
					Containers:                    []corev1.Container{{Name: "main", Image: "example.com/trainer", Command: []string{"train"}, Args: []string{"--rank", "$(rank)"}}},
				},
			},
		})
	}
}

func inQueue(priority int32) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: "q", Priority: priority}}
	}
}

// untilJob waits until the condition holds for the job.
func (w *world) untilJob(name, what string, holds func(*tensorstack.GenericJob) bool) *tensorstack.GenericJob {
	w.Helper()
	return harness.UntilOne(w.World, &tensorstack.GenericJobList{}, name, what, holds)
}

func (w *world) untilPhase(name string, phase tensorstack.JobPhase) *tensorstack.GenericJob {
	w.Helper()
	return w.untilJob(name, "is "+string(phase), func(job *tensorstack.GenericJob) bool { return job.Status.Phase == phase })
}

// untilOnly waits until these are all the pods there are.
func (w *world) untilOnly(names ...string) {
	w.Helper()
	w.UntilPods(fmt.Sprintf("the pods are %v", names), func(pods map[string]corev1.Pod) bool {
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
	w.UntilPods(fmt.Sprintf("%s runs in attempt %d", name, attempt), func(pods map[string]corev1.Pod) bool {
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
	if err := w.Client.Status().Patch(w.Context(), ended, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("ending %s: %v", name, err)
	}
}

// uids are those of the pods, to see whether they are still the same later.
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

// pause pauses and resumes a job.
func (w *world) pause(name string, is bool) {
	w.Helper()
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	patch := fmt.Sprintf(`{"spec":{"runMode":{"pause":{"enabled":%v}}}}`, is)
	if err := w.Client.Patch(w.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("pausing %s, %v: %v", name, is, err)
	}
}

func condition(job *tensorstack.GenericJob, kind tensorstack.JobConditionType) tensorstack.JobCondition {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return tensorstack.JobCondition{}
}
