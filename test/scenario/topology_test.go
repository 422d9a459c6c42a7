package scenario

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// untilNodesAreFree waits until the simulated nodes are free of earlier tests. A Workload that is assigned to a node
// that is in use is evicted, and pods of exclusive Jobs keep others out of their racks.
func (w *world) untilNodesAreFree() {
	w.Helper()
	nodes, all := w.simNodes(), w.Everywhere()
	harness.Until(all, &kueue.WorkloadList{}, "no Workload is assigned to nodes", func(list *kueue.WorkloadList) bool {
		return !slices.ContainsFunc(list.Items, hasNodes)
	})
	harness.Until(all, &corev1.PodList{}, "the simulated nodes have no running pods", func(list *corev1.PodList) bool {
		return !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
			return slices.Contains(nodes, pod.Spec.NodeName) && pod.Status.Phase != corev1.PodSucceeded &&
				pod.Status.Phase != corev1.PodFailed
		})
	})
}

// manualQueue creates a queue that is on hold, so that only the test admits Workloads and assigns them to nodes.
func (w *world) manualQueue() {
	w.Helper()
	w.untilNodesAreFree()
	w.gpuQueue("gpu", 32, func(q *kueue.ClusterQueueSpec) { q.StopPolicy = ptr.To(kueue.Hold) })
	w.untilQueue(metav1.ConditionFalse, kueue.ClusterQueueActiveReasonStopped, "")
}

// hasNodes reports whether an unfinished Workload is assigned to nodes, whether or not it has pods there.
func hasNodes(wl kueue.Workload) bool {
	return wl.Status.Admission != nil && !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) &&
		slices.ContainsFunc(wl.Status.Admission.PodSetAssignments,
			func(a kueue.PodSetAssignment) bool { return a.TopologyAssignment != nil })
}

// simNodes returns the sorted host names of the simulated nodes.
func (w *world) simNodes() []string {
	w.Helper()
	var list corev1.NodeList
	if err := w.Client.List(w.Context(), &list, client.MatchingLabels{"muster.dev/simulated": "true"}); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, node := range list.Items {
		out = append(out, node.Labels[corev1.LabelHostname])
	}
	slices.Sort(out)
	return out
}

// at is a number of pods on a node.
type at struct {
	node string
	pods int32
}

// admit admits the Workload, which must have one pod set, with its pods assigned to the nodes.
func (w *world) admit(wl *kueue.Workload, places ...at) {
	w.Helper()
	assignment := &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
	for _, place := range places {
		assignment.Domains = append(assignment.Domains,
			kueue.TopologyDomainAssignment{Values: []string{place.node}, Count: place.pods})
	}
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: kueue.ResourceFlavorReference(w.Namespace)}
	podSet := wl.Spec.PodSets[0]
	usage := corev1.ResourceList{}
	for name, q := range podSet.Template.Spec.Containers[0].Resources.Requests {
		usage[name] = *resource.NewQuantity(q.Value()*int64(podSet.Count), resource.DecimalSI)
	}
	w.ChangeStatus(wl.Name, func(s *kueue.WorkloadStatus) {
		s.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(w.Namespace),
			PodSetAssignments: []kueue.PodSetAssignment{{
				Name: podSet.Name, Flavors: flavors, Count: ptr.To(podSet.Count), ResourceUsage: usage,
				TopologyAssignment: assignment}}}
		for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			meta.SetStatusCondition(&s.Conditions,
				metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: "admitted by the test"})
		}
	})
}

// reassign assigns the pods of an admitted Workload to other nodes. It impersonates the operator, which alone may do
// so.
func (w *world) reassign(wl *kueue.Workload, places ...at) {
	w.Helper()
	config := rest.CopyConfig(w.Cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:muster-system:muster-operator",
		Groups: []string{"system:masters"}}
	operator, err := client.NewWithWatch(config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	as := *w.World
	as.Client = operator
	as.ChangeStatus(wl.Name, func(s *kueue.WorkloadStatus) {
		domains := &s.Admission.PodSetAssignments[0].TopologyAssignment.Domains
		*domains = nil
		for _, place := range places {
			*domains = append(*domains, kueue.TopologyDomainAssignment{Values: []string{place.node}, Count: place.pods})
		}
	})
}

// untilPodsOn waits until the Job has one pod per node, each by its completion index on that node, and returns the
// pods. Terminating and failed pods do not count.
func (w *world) untilPodsOn(job string, nodes ...string) []corev1.Pod {
	w.Helper()
	var found []corev1.Pod
	last := ""
	defer func() {
		if w.Failed() {
			w.Logf("last observed pods while waiting for %s: %s", job, last)
		}
	}()
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("the pods of %s are on %v", job, nodes),
		func(list *corev1.PodList) bool {
			found, last = nil, ""
			got := make([]string, len(nodes))
			live := 0
			for _, pod := range list.Items {
				last += fmt.Sprintf("%s on %q, selects %v, gates %v; ", pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector,
					pod.Spec.SchedulingGates)
				if pod.Labels[batchv1.JobNameLabel] != job || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed {
					continue
				}
				live++
				var index int
				if _, err := fmt.Sscan(pod.Labels[batchv1.JobCompletionIndexAnnotation], &index); err == nil && index < len(got) {
					got[index] = pod.Spec.NodeName
				}
				found = append(found, pod)
			}
			return live == len(nodes) && cmp.Equal(nodes, got)
		})
	return found
}

// indexedJob returns an Indexed Job that tolerates failed pods.
func (w *world) indexedJob(name string, pods int32) *batchv1.Job {
	job := w.batchJob(name, "gpu", pods, time.Hour)
	job.Spec.CompletionMode, job.Spec.BackoffLimit = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](100)
	return job
}

// TestGatedPodsFollowThePlacementOfTheirRanks: each pod of an Indexed Job runs on the node that its Workload assigns to
// its completion index, also after the assignment was changed. Deactivation restores the Job's template.
func TestGatedPodsFollowThePlacementOfTheirRanks(t *testing.T) {
	w := newWorld(t)
	w.manualQueue()
	nodes := w.simNodes()
	job := w.indexedJob("job", 3)
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	wl := w.untilOnlyWorkload("exists", exists)
	w.admit(wl, at{nodes[1], 2}, at{nodes[0], 1})
	for _, pod := range w.untilPodsOn("job", nodes[1], nodes[1], nodes[0]) {
		if pod.Spec.NodeSelector[corev1.LabelHostname] != pod.Spec.NodeName ||
			pod.Annotations[kueue.WorkloadAnnotation] != wl.Name {
			t.Errorf("pod %s has node selector %v and Workload annotation %q, want its node and Workload", pod.Name,
				pod.Spec.NodeSelector, pod.Annotations[kueue.WorkloadAnnotation])
		}
	}
	w.reassign(wl, at{nodes[1], 1}, at{nodes[2], 1}, at{nodes[0], 1})
	w.untilPodsOn("job", nodes[1], nodes[2], nodes[0])

	w.Patch(w.untilOnlyWorkload("exists", exists), `{"spec": {"active": false}}`)
	w.untilRestored("job", before)
}

// TestAReplacementPodGetsTheNodeOfItsPredecessor: a deleted pod's replacement, which has the same completion index,
// runs on the same node.
func TestAReplacementPodGetsTheNodeOfItsPredecessor(t *testing.T) {
	w := newWorld(t)
	w.manualQueue()
	nodes := w.simNodes()
	job := w.indexedJob("job", 3)
	w.untilHeld(job)
	w.Create(job)
	w.admit(w.untilOnlyWorkload("exists", exists), at{nodes[1], 1}, at{nodes[0], 2})
	pods := w.untilPodsOn("job", nodes[1], nodes[0], nodes[0])
	if err := w.Client.Delete(t.Context(), &pods[1]); err != nil {
		t.Fatal(err)
	}
	deleted := pods[1].UID
	harness.Until(w.World, &corev1.PodList{}, "the deleted pod is replaced", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			if pod.UID == deleted {
				return false
			}
		}
		return len(list.Items) >= 3
	})
	w.untilPodsOn("job", nodes[1], nodes[0], nodes[0])
}

// TestPodsThatFillTheirNodesArePlacedByTheirTemplate: if the assigned nodes have capacity for no more than the Job's
// pods, the pods need no scheduling gates, because a node affinity in their template suffices. When the assignment
// changes, the Job is restarted with a new template.
func TestPodsThatFillTheirNodesArePlacedByTheirTemplate(t *testing.T) {
	w := newWorld(t)
	w.manualQueue()
	nodes := w.simNodes()
	job := w.indexedJob("job", 4)
	resources := job.Spec.Template.Spec.Containers[0].Resources
	resources.Requests[gpu], resources.Limits[gpu] = resource.MustParse("4"), resource.MustParse("4")
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	wl := w.untilOnlyWorkload("exists", exists)
	w.admit(wl, at{nodes[3], 2}, at{nodes[2], 2})
	w.UntilJob("job", "runs", running(4))
	harness.Until(w.World, &corev1.PodList{}, "two pods are on each of the assigned nodes",
		func(list *corev1.PodList) bool {
			count := map[string]int{}
			for _, pod := range list.Items {
				if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.Affinity == nil {
					t.Fatalf("pod %s has scheduling gates %v and affinity %v, want no gates and a node affinity", pod.Name,
						pod.Spec.SchedulingGates, pod.Spec.Affinity)
				}
				count[pod.Spec.NodeName]++
			}
			return count[nodes[3]] == 2 && count[nodes[2]] == 2
		})
	// The template names the old nodes, so a repair has to restart the Job.
	w.reassign(wl, at{nodes[3], 2}, at{nodes[1], 2})
	w.UntilEvent("job", "Moved")
	harness.Until(w.World, &corev1.PodList{}, "two pods are on each of the new nodes", func(list *corev1.PodList) bool {
		count := map[string]int{}
		for _, pod := range list.Items {
			if pod.DeletionTimestamp == nil {
				count[pod.Spec.NodeName]++
			}
		}
		return count[nodes[3]] == 2 && count[nodes[1]] == 2
	})
	w.Patch(w.untilOnlyWorkload("exists", exists), `{"spec": {"active": false}}`)
	w.untilRestored("job", before)
}

// rackLabel is set by these tests, which need smaller racks than those of the simulated nodes.
const rackLabel = "example.com/rack"

// labelRacks labels every two simulated nodes as a rack, and returns the rack of each node.
func (w *world) labelRacks() map[string]string {
	w.Helper()
	out := map[string]string{}
	for i, name := range w.simNodes() {
		out[name] = fmt.Sprintf("%s-%d", w.Namespace, i/2)
		w.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
			fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, rackLabel, out[name]))
	}
	return out
}

// exclusiveGang returns a JobSet of two Jobs with three pods each, with the exclusive placement of one Job per rack.
func (w *world) exclusiveGang(name, queue string) *jobset.JobSet {
	js := w.gang(name, queue, 3, time.Hour)
	js.Annotations = map[string]string{jobset.ExclusiveKey: rackLabel}
	js.Spec.ReplicatedJobs[0].Replicas = 2
	return js
}

// untilInSeparateRacks waits until that many Jobs have their three pods bound, each Job in a rack of its own, and
// returns the pods. It also checks that no pod was rejected at its creation.
func (w *world) untilInSeparateRacks(racks map[string]string, count int) []corev1.Pod {
	w.Helper()
	var pods []corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%d Jobs have three bound pods each", count),
		func(list *corev1.PodList) bool {
			pods = list.Items
			bound := map[string]int{}
			rackOf, jobIn := map[string]string{}, map[string]string{}
			for _, pod := range list.Items {
				job, rack := pod.Labels[batchv1.JobNameLabel], racks[pod.Spec.NodeName]
				if pod.Spec.NodeName == "" {
					continue
				}
				if known, ok := rackOf[job]; ok && known != rack {
					w.Fatalf("Job %s has pods in the racks %s and %s, want one rack", job, known, rack)
				}
				if other, ok := jobIn[rack]; ok && other != job {
					w.Fatalf("the Jobs %s and %s both have pods in rack %s", job, other, rack)
				}
				rackOf[job], jobIn[rack] = rack, job
				bound[job]++
			}
			for _, n := range bound {
				if n != 3 {
					return false
				}
			}
			return len(bound) == count
		})
	var events eventsv1.EventList
	if err := w.Client.List(w.Context(), &events, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == "FailedCreate" {
			w.Errorf("event FailedCreate of %s: %s", event.Regarding.Name, event.Note)
		}
	}
	return pods
}

// TestExclusiveJobsWithoutAQueueGetARackEach: exclusive placement also holds for a JobSet that is not queued.
func TestExclusiveJobsWithoutAQueueGetARackEach(t *testing.T) {
	w := newWorld(t)
	racks := w.topologyQueue("unused", 32)
	js := w.exclusiveGang("js", "")
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "muster.dev/simulated",
		Operator: corev1.TolerationOpExists}}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{"muster.dev/simulated": "true"}
	w.Create(js)
	w.untilInSeparateRacks(racks, 2)
}

// topologyQueue creates a queue of simulated GPUs whose flavor has a topology of racks and nodes. It returns the rack
// of each node once the operator has observed all rack labels, as a Workload on each node shows.
func (w *world) topologyQueue(local string, gpus int64) map[string]string {
	w.Helper()
	w.untilNodesAreFree()
	racks := w.labelRacks()
	topology := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rackLabel}, {NodeLabel: corev1.LabelHostname}}}}
	w.Shared(topology)
	flavor := simulated
	flavor.TopologyName = ptr.To(kueue.TopologyReference(w.Namespace))
	w.Queue(local, flavor, corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)})
	for node, rack := range racks {
		probe := w.bare("probe-of-"+node, local, 1)
		probe.Spec.PodSets[0].Template.Spec.NodeSelector = map[string]string{rackLabel: rack, corev1.LabelHostname: node}
		w.Create(probe)
		w.UntilWorkload(probe.Name, "runs", runs)
		w.Delete(probe)
	}
	harness.Until(w.World, &kueue.WorkloadList{}, "the Workloads that probed the nodes are deleted",
		func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
	return racks
}

// TestExclusiveJobsWaitForRacksOfTheirOwn: two racks have capacity for the pods of two JobSets, but are exclusive to
// the Jobs of the first. The second JobSet waits until the first is deleted.
func TestExclusiveJobsWaitForRacksOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	racks := w.topologyQueue("gpu", 32)
	first, second := w.exclusiveGang("first", "gpu"), w.exclusiveGang("second", "gpu")
	w.Create(first)
	for _, pod := range w.untilInSeparateRacks(racks, 2) {
		if pod.Spec.NodeSelector[rackLabel] != racks[pod.Spec.NodeName] {
			t.Errorf("pod %s has node selector %v, want the label of its rack", pod.Name, pod.Spec.NodeSelector)
		}
	}
	w.Create(second)
	harness.Until(w.World, &kueue.WorkloadList{}, "the second JobSet waits for racks",
		func(list *kueue.WorkloadList) bool {
			for _, wl := range list.Items {
				c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
				if wl.OwnerReferences[0].Name == "second" && c != nil && c.Status == metav1.ConditionFalse &&
					c.Reason == kueue.WorkloadTopologyPlacementFailed {
					return true
				}
			}
			return false
		})
	w.Delete(first)
	harness.Until(w.World, &corev1.PodList{}, "the pods of the first JobSet are deleted", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			if pod.Labels[jobset.JobSetNameKey] == "first" {
				return false
			}
		}
		return true
	})
	w.untilInSeparateRacks(racks, 2)
}
