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

// placesByHand makes a queue of which nobody is admitted but by the test, which gives
// the places too. It waits until the simulated nodes are free of earlier tests: who is
// given a place that somebody else has, or that a pod is in, is evicted.
func (w *world) manualQueue() {
	w.Helper()
	nodes, all := w.simNodes(), w.Everywhere()
	harness.Until(all, &kueue.WorkloadList{}, "nobody has places any more", func(list *kueue.WorkloadList) bool {
		return !slices.ContainsFunc(list.Items, hasPlaces)
	})
	harness.Until(all, &corev1.PodList{}, "the simulated nodes are free", func(list *corev1.PodList) bool {
		return !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
			return slices.Contains(nodes, pod.Spec.NodeName) && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
		})
	})
	w.gpuQueue("gpu", 32, func(q *kueue.ClusterQueueSpec) { q.StopPolicy = ptr.To(kueue.Hold) })
	w.untilQueue(metav1.ConditionFalse, kueue.ClusterQueueActiveReasonStopped, "")
}

// hasPlaces reports whether the Workload keeps places, with or without pods in them.
func hasPlaces(wl kueue.Workload) bool {
	return wl.Status.Admission != nil && !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) &&
		slices.ContainsFunc(wl.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool { return a.TopologyAssignment != nil })
}

// simNodes are the host names of the simulated nodes, in order.
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

// at is so many pods on a node.
type at struct {
	node string
	pods int32
}

// admit has the Workload, of one pod set, run on the nodes.
func (w *world) admit(wl *kueue.Workload, places ...at) {
	w.Helper()
	assignment := &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
	for _, place := range places {
		assignment.Domains = append(assignment.Domains, kueue.TopologyDomainAssignment{Values: []string{place.node}, Count: place.pods})
	}
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: kueue.ResourceFlavorReference(w.Namespace)}
	podSet := wl.Spec.PodSets[0]
	usage := corev1.ResourceList{}
	for name, q := range podSet.Template.Spec.Containers[0].Resources.Requests {
		usage[name] = *resource.NewQuantity(q.Value()*int64(podSet.Count), resource.DecimalSI)
	}
	w.ChangeStatus(wl.Name, func(s *kueue.WorkloadStatus) {
		s.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(w.Namespace), PodSetAssignments: []kueue.PodSetAssignment{{
			Name: podSet.Name, Flavors: flavors, Count: ptr.To(podSet.Count), ResourceUsage: usage, TopologyAssignment: assignment}}}
		for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: "by hand"})
		}
	})
}

// replaced gives the Workload other places, as only the operator may.
func (w *world) reassign(wl *kueue.Workload, places ...at) {
	w.Helper()
	config := rest.CopyConfig(w.Cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:muster-system:muster-operator", Groups: []string{"system:masters"}}
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

// untilOn waits until the live pods of the Job, by completion index, are on the nodes.
func (w *world) untilPodsOn(job string, nodes ...string) []corev1.Pod {
	w.Helper()
	var found []corev1.Pod
	last := ""
	defer func() {
		if w.Failed() {
			w.Logf("%s has pods on %s", job, last)
		}
	}()
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("the pods of %s are on %v", job, nodes), func(list *corev1.PodList) bool {
		found, last = nil, ""
		got := make([]string, len(nodes))
		live := 0
		for _, pod := range list.Items {
			last += fmt.Sprintf("%s on %q, selects %v, gates %v; ", pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector, pod.Spec.SchedulingGates)
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

// placedJob is an Indexed Job that can do without some of its pods for a while.
func (w *world) indexedJob(name string, pods int32) *batchv1.Job {
	job := w.batchJob(name, "gpu", pods, time.Hour)
	job.Spec.CompletionMode, job.Spec.BackoffLimit = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](100)
	return job
}

func TestGatedPodsFollowThePlacementOfTheirRanks(t *testing.T) {
	w := newWorld(t)
	w.manualQueue()
	nodes := w.simNodes()
	job := w.indexedJob("job", 3)
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	wl := w.untilOnlyWorkload("is there", exists)
	w.admit(wl, at{nodes[1], 2}, at{nodes[0], 1})
	for _, pod := range w.untilPodsOn("job", nodes[1], nodes[1], nodes[0]) {
		if pod.Spec.NodeSelector[corev1.LabelHostname] != pod.Spec.NodeName || pod.Annotations[kueue.WorkloadAnnotation] != wl.Name {
			t.Errorf("%s selects %v, is of Workload %q", pod.Name, pod.Spec.NodeSelector, pod.Annotations[kueue.WorkloadAnnotation])
		}
	}
	w.reassign(wl, at{nodes[1], 1}, at{nodes[2], 1}, at{nodes[0], 1})
	w.untilPodsOn("job", nodes[1], nodes[2], nodes[0])

	w.Patch(w.untilOnlyWorkload("is there", exists), `{"spec": {"active": false}}`)
	w.untilRestored("job", before)
}

func TestAReplacementPodGetsTheNodeOfItsPredecessor(t *testing.T) {
	w := newWorld(t)
	w.manualQueue()
	nodes := w.simNodes()
	job := w.indexedJob("job", 3)
	w.untilHeld(job)
	w.Create(job)
	w.admit(w.untilOnlyWorkload("is there", exists), at{nodes[1], 1}, at{nodes[0], 2})
	pods := w.untilPodsOn("job", nodes[1], nodes[0], nodes[0])
	if err := w.Client.Delete(t.Context(), &pods[1]); err != nil {
		t.Fatal(err)
	}
	gone := pods[1].UID
	harness.Until(w.World, &corev1.PodList{}, "another pod came for it", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			if pod.UID == gone {
				return false
			}
		}
		return len(list.Items) >= 3
	})
	w.untilPodsOn("job", nodes[1], nodes[0], nodes[0])
}

func TestPodsThatFillTheirNodesArePlacedByTheirTemplate(t *testing.T) {
	w := newWorld(t)
	w.manualQueue()
	nodes := w.simNodes()
	job := w.indexedJob("job", 4)
	asks := job.Spec.Template.Spec.Containers[0].Resources
	asks.Requests[gpu], asks.Limits[gpu] = resource.MustParse("4"), resource.MustParse("4")
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	wl := w.untilOnlyWorkload("is there", exists)
	w.admit(wl, at{nodes[3], 2}, at{nodes[2], 2})
	w.UntilJob("job", "runs", running(4))
	harness.Until(w.World, &corev1.PodList{}, "two pods are on each of the nodes", func(list *corev1.PodList) bool {
		count := map[string]int{}
		for _, pod := range list.Items {
			if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.Affinity == nil {
				t.Fatalf("%s has gates %v, affinity %v", pod.Name, pod.Spec.SchedulingGates, pod.Spec.Affinity)
			}
			count[pod.Spec.NodeName]++
		}
		return count[nodes[3]] == 2 && count[nodes[2]] == 2
	})
	// A repair of such a Job: its template names the old nodes, so it starts anew.
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
	w.Patch(w.untilOnlyWorkload("is there", exists), `{"spec": {"active": false}}`)
	w.untilRestored("job", before)
}

// rackLabel is one of the simulated nodes' own making here: they come in larger racks.
const rackLabel = "example.com/rack"

// racks has each two of the simulated nodes be a rack, and says which.
func (w *world) labelRacks() map[string]string {
	w.Helper()
	out := map[string]string{}
	for i, name := range w.simNodes() {
		out[name] = fmt.Sprintf("%s-%d", w.Namespace, i/2)
		w.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, rackLabel, out[name]))
	}
	return out
}

// apart is a JobSet of two Jobs of three pods each, each Job in a rack of its own.
func (w *world) exclusiveGang(name, queue string) *jobset.JobSet {
	js := w.gang(name, queue, 3, time.Hour)
	js.Annotations = map[string]string{jobset.ExclusiveKey: rackLabel}
	js.Spec.ReplicatedJobs[0].Replicas = 2
	return js
}

// untilApart waits until so many Jobs have all their three pods in one rack each, and no
// two in the same. Pods are never made only to be refused.
func (w *world) untilInSeparateRacks(racks map[string]string, count int) []corev1.Pod {
	w.Helper()
	var pods []corev1.Pod
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%d Jobs are in racks of their own", count), func(list *corev1.PodList) bool {
		pods = list.Items
		bound := map[string]int{}
		rackOf, jobIn := map[string]string{}, map[string]string{}
		for _, pod := range list.Items {
			job, rack := pod.Labels[batchv1.JobNameLabel], racks[pod.Spec.NodeName]
			if pod.Spec.NodeName == "" {
				continue
			}
			if was, ok := rackOf[job]; ok && was != rack {
				w.Fatalf("%s has pods in racks %s and %s", job, was, rack)
			}
			if other, ok := jobIn[rack]; ok && other != job {
				w.Fatalf("%s and %s have pods in rack %s", job, other, rack)
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
			w.Errorf("%s: %s", event.Regarding.Name, event.Note)
		}
	}
	return pods
}

func TestExclusiveJobsWithoutAQueueGetARackEach(t *testing.T) {
	w := newWorld(t)
	racks := w.topologyQueue("unused", 32)
	js := w.exclusiveGang("js", "")
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{"muster.dev/simulated": "true"}
	w.Create(js)
	w.untilInSeparateRacks(racks, 2)
}

// placedQueue makes a queue of simulated GPUs whose flavor is placed on nodes, in racks, and gives the racks once the
// operator knows of them.
func (w *world) topologyQueue(local string, gpus int64) map[string]string {
	w.Helper()
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
	harness.Until(w.World, &kueue.WorkloadList{}, "the probes are gone", func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
	return racks
}

// TestExclusiveJobsWaitForRacksOfTheirOwn: the racks have room for twice as many
// pods, and no two of these Jobs share one.
func TestExclusiveJobsWaitForRacksOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	racks := w.topologyQueue("gpu", 32)
	first, second := w.exclusiveGang("first", "gpu"), w.exclusiveGang("second", "gpu")
	w.Create(first)
	for _, pod := range w.untilInSeparateRacks(racks, 2) {
		if pod.Spec.NodeSelector[rackLabel] != racks[pod.Spec.NodeName] {
			t.Errorf("%s selects %v", pod.Name, pod.Spec.NodeSelector)
		}
	}
	w.Create(second)
	harness.Until(w.World, &kueue.WorkloadList{}, "the second waits for racks", func(list *kueue.WorkloadList) bool {
		for _, wl := range list.Items {
			c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
			if wl.OwnerReferences[0].Name == "second" && c != nil && c.Status == metav1.ConditionFalse && c.Reason == kueue.WorkloadTopologyPlacementFailed {
				return true
			}
		}
		return false
	})
	if err := w.Client.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	harness.Until(w.World, &corev1.PodList{}, "the pods of the first are gone", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			if pod.Labels[jobset.JobSetNameKey] == "first" {
				return false
			}
		}
		return true
	})
	w.untilInSeparateRacks(racks, 2)
}
