package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAnElasticJobSetShrinksAndGrows checks an elastic JobSet of 2 to 4 pods on four nodes, each of which has capacity
// for one pod. It shrinks by one pod for a new job, and by another, to its minimum, for a job of higher priority. It
// grows again when both are deleted. The other pods are kept, and each is at the place of its rank.
func TestAnElasticJobSetShrinksAndGrows(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.elasticJobSet("js", 2, 4))
	first := w.untilSize("js", 4)
	rigid, urgent := w.gang("rigid", "q", 1, 8, time.Hour), w.gang("urgent", "q", 1, 8, time.Hour)
	w.Create(rigid)
	w.expectSamePods(first, w.untilSize("js", 3))
	w.untilRunning("rigid", 1)
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 100}
	w.Shared(class)
	urgent.Labels[kueue.WorkloadPriorityClassLabel] = class.Name
	w.Create(urgent)
	w.untilRunning("urgent", 1)
	smallest := w.untilSize("js", 2)
	w.expectSamePods(first, smallest)
	w.Delete(rigid)
	w.Delete(urgent)
	w.expectSamePods(smallest, w.untilSize("js", 4))
}

// TestAnElasticJobShrinksAndGrows checks an elastic batch Job of 2 to 4 pods on four nodes, each of which has capacity
// for one pod. It shrinks for a new job, and grows again when that is deleted; the other pods are kept, and each is at
// the place of its rank. It has no more pods than its user asks for, and is as its user made it once it has been
// stopped.
func TestAnElasticJobShrinksAndGrows(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.Namespace,
		Labels: map[string]string{kueue.QueueLabel: "q"}},
		Spec: w.elasticJobSet("job", 2, 4).Spec.ReplicatedJobs[0].Template.Spec}
	delete(job.Spec.Template.Annotations, "muster.dev/max-replicas")
	job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](4), ptr.To[int32](4)
	w.Create(job)
	first := w.untilSize("job", 4)
	rigid := w.gang("rigid", "q", 2, 8, time.Hour)
	w.Create(rigid)
	w.untilRunning("rigid", 2)
	smallest := w.untilSize("job", 2)
	w.expectSamePods(first, smallest)
	w.Delete(rigid)
	largest := w.untilSize("job", 4)
	w.expectSamePods(smallest, largest)
	w.Patch(job.DeepCopy(), `{"spec": {"parallelism": 3, "completions": 3}}`)
	w.expectSamePods(largest, w.untilSize("job", 3))
	wl := w.UntilWorkloadOf("job", "is admitted", admitted)
	w.Patch(wl, `{"spec": {"active": false}}`)
	harness.Until(w.World, &batchv1.JobList{}, "the Job is suspended, as its user wants it to be",
		func(list *batchv1.JobList) bool {
			return slices.ContainsFunc(list.Items, func(is batchv1.Job) bool {
				return is.Name == "job" && *is.Spec.Suspend && *is.Spec.Parallelism == 3 && *is.Spec.Completions == 3 &&
					is.Annotations["muster.dev/before-admission"] == ""
			})
		})
}

// TestOperatorKilledWhileAnElasticJobSetIsResized checks that an elastic JobSet shrinks and grows to the right sizes,
// and keeps the other pods, if the operator is killed in the meantime.
func TestOperatorKilledWhileAnElasticJobSetIsResized(t *testing.T) {
	w := newSerialWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.elasticJobSet("js", 2, 4))
	before := w.untilSize("js", 4)
	rigid := w.gang("rigid", "q", 2, 8, time.Hour)
	w.Create(rigid)
	w.Operator().Kill()
	w.untilRunning("rigid", 2)
	smallest := w.untilSize("js", 2)
	w.expectSamePods(before, smallest)
	w.Delete(rigid)
	w.Operator().Kill()
	w.expectSamePods(smallest, w.untilSize("js", 4))
}

// TestAnElasticJobSetStartsSmall checks that an elastic JobSet starts with as many pods as there are nodes for, and
// that a restart after it was deactivated uses the capacity of that moment.
func TestAnElasticJobSetStartsSmall(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	w.Create(w.elasticJobSet("js", 2, 4))
	w.untilSize("js", 3)
	wl := w.UntilWorkloadOf("js", "is admitted", admitted)
	w.Patch(wl.DeepCopy(), `{"spec": {"active": false}}`)
	w.UntilWorkloadOf("js", "has released its quota", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	w.Create(w.gang("rigid", "q", 1, 8, time.Hour))
	w.untilRunning("rigid", 1)
	w.Patch(wl.DeepCopy(), `{"spec": {"active": true}}`)
	for _, pod := range w.untilSize("js", 2) {
		w.EndPod(pod, 0)
	}
	w.untilCompleted("js")
}

// elasticJobSet returns a JobSet of minPods to maxPods pods. Each needs a whole node and runs for an hour.
func (w *world) elasticJobSet(name string, minPods, maxPods int32) *jobset.JobSet {
	js := w.gang(name, "q", minPods, 8, time.Hour)
	template := &js.Spec.ReplicatedJobs[0].Template.Spec.Template
	template.Annotations["muster.dev/min-replicas"], template.Annotations["muster.dev/max-replicas"] = fmt.Sprint(minPods),
		fmt.Sprint(maxPods)
	template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	return js
}

// untilSize waits until the JobSet or the batch Job has exactly that many pods that have not failed, all running, and
// quota for no others. It checks that each is at the place of its rank, and returns them by completion index.
func (w *world) untilSize(name string, pods int) map[string]corev1.Pod {
	w.Helper()
	var running map[string]corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%s has %d pods, all running", name, pods),
		func(list *corev1.PodList) bool {
			running = map[string]corev1.Pod{}
			all := 0
			for _, pod := range list.Items {
				if name == cmp.Or(pod.Labels[jobset.JobSetNameKey], pod.Labels[batchv1.JobNameLabel]) &&
					pod.Status.Phase != corev1.PodFailed {
					all++
					if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
						running[pod.Labels[batchv1.JobCompletionIndexAnnotation]] = pod
					}
				}
			}
			return all == pods && len(running) == pods
		})
	wl := w.UntilWorkloadOf(name, fmt.Sprintf("has quota for %d pods and no resource requests", pods),
		func(wl *kueue.Workload) bool {
			return wl.Status.Admission != nil && *wl.Status.Admission.PodSetAssignments[0].Count == int32(pods) &&
				len(wl.Status.ResourceRequests) == 0
		})
	w.expectPlacedByRank(running, nodesByRank(wl))
	return running
}

// expectPlacedByRank checks that each pod is on the node of its rank. The keys of the pods sort by rank.
func (w *world) expectPlacedByRank(pods map[string]corev1.Pod, nodes []string) {
	w.Helper()
	if len(pods) != len(nodes) {
		w.Errorf("%d pods have places on the nodes %v, want one place for each", len(pods), nodes)
		return
	}
	for rank, key := range slices.Sorted(maps.Keys(pods)) {
		if pod := pods[key]; pod.Spec.NodeName != nodes[rank] {
			w.Errorf("pod %s of rank %d is on node %s, want %s", pod.Name, rank, pod.Spec.NodeName, nodes[rank])
		}
	}
}

// expectSamePods checks that a resize kept as many pods as possible, as ExpectSamePods of the harness does, and that no
// Job has failed pods.
func (w *world) expectSamePods(before, after map[string]corev1.Pod) {
	w.Helper()
	w.ExpectSamePods(uidsOf(before), uidsOf(after))
	var jobs batchv1.JobList
	if err := w.Client.List(w.Context(), &jobs, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	for _, job := range jobs.Items {
		if job.Status.Failed > 0 {
			w.Errorf("Job %s has %d failed pods, want none", job.Name, job.Status.Failed)
		}
	}
}

// uidsOf returns the UIDs of the pods, by the same keys.
func uidsOf(pods map[string]corev1.Pod) map[string]types.UID {
	out := map[string]types.UID{}
	for index, pod := range pods {
		out[index] = pod.UID
	}
	return out
}

// nodesByRank returns the node of each place of the Workload's only pod set, in the order of ranks.
func nodesByRank(wl *kueue.Workload) []string {
	var out []string
	for _, domain := range wl.Status.Admission.PodSetAssignments[0].TopologyAssignment.Domains {
		for range domain.Count {
			out = append(out, domain.Values[len(domain.Values)-1])
		}
	}
	return out
}
