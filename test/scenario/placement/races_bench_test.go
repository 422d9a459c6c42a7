//go:build bench

package placement

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/scenario/harness"
)

const (
	raceRounds = 20
	// maxReplacement is from the loss of a place, as the API server shows it, to the places that are written in its stead.
	maxReplacement = time.Second
)

// TestLostRaces: how soon a job that somebody took a place of has others. Who was to go there has pods yet or has none.
func TestLostRaces(t *testing.T) {
	w := newWorld(t)
	nodes := w.rackOf("r0", 4)
	w.queue()
	w.Shared(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 1000})
	r := &races{world: w, nodes: nodes, pods: w.observe(&corev1.PodList{}), workloads: w.observe(&kueue.WorkloadList{})}

	r.measure("room taken by others before the pods come", r.capacityTaken)
	r.measure("node gone before the pods come", r.nodeDeleted)
	r.measure("pods preempted by kube-scheduler", r.preempted)
	r.measure("place refused by kube-scheduler, believed after 0.5 s", r.refused)
}

// races are rounds in which a job that has its places loses one of them.
type races struct {
	*world
	nodes           []string
	pods, workloads *observer
}

// measure prints how long it takes until a job has other places. A round gives the moment at which the first sign of the loss is at the
// API server, or before it, and the one at which the new places are.
func (r *races) measure(what string, round func(job string) (lost, replaced time.Time)) {
	r.Helper()
	var durations []time.Duration
	for i := range raceRounds {
		lost, replaced := round(fmt.Sprintf("a%d", i))
		durations = append(durations, replaced.Sub(lost))
	}
	slices.Sort(durations)
	median, longest := durations[len(durations)/2], durations[len(durations)-1]
	figure.Reach(r.T, what+": the median, the longest", fmt.Sprintf("%.3f s, %.3f s", median.Seconds(), longest.Seconds()), figure.Seconds(maxReplacement), longest <= maxReplacement)
}

// createPlaced has a gang of five placed on three of the four nodes, two on a node, and gives the first node of it by name.
func (r *races) createPlaced(job string) (node string) {
	r.Helper()
	r.Create(r.gang(job, "q", 5, 3, time.Hour))
	return slices.Sorted(maps.Keys(harness.PlacesOf(r.UntilWorkloadOf(job, "is admitted", admitted))))[0]
}

// moved is when the job has no place on the node any more.
func (r *races) moved(job, node string) <-chan time.Time {
	return r.workloads.next(func(o client.Object) bool {
		wl := o.(*kueue.Workload)
		owner := metav1.GetControllerOf(wl)
		return owner != nil && owner.Name == job && admitted(wl) && harness.PlacesOf(wl)[node] == 0
	})
}

// clear removes what a round made, and returns once the room is free.
func (r *races) clear(job string, others ...client.Object) {
	r.Helper()
	r.Delete(r.gang(job, "q", 0, 0, 0))
	for _, o := range others {
		r.Delete(o)
	}
	harness.Until(r.World, &kueue.WorkloadList{}, "nothing is placed", func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
	harness.Until(r.Everywhere(), &corev1.PodList{}, "the nodes are empty", func(list *corev1.PodList) bool {
		return !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return slices.Contains(r.nodes, pod.Spec.NodeName) && pod.Name != "hermit" })
	})
}

// capacityTaken: a pod of somebody else is on the node before the gang's pods are made.
func (r *races) capacityTaken(job string) (lost, replaced time.Time) {
	block := r.blockPods()
	node := r.createPlaced(job)
	moved := r.moved(job, node)
	other := r.podOn(r.Namespace+"-other", node, 8)
	lost = time.Now()
	r.Create(other)
	replaced = r.await(moved, job+" has other places")
	r.clear(job, other)
	block.release()
	return lost, replaced
}

// nodeDeleted: the node is deleted before the gang's pods are made.
func (r *races) nodeDeleted(job string) (lost, replaced time.Time) {
	block := r.blockPods()
	name := r.createPlaced(job)
	moved := r.moved(job, name)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Get(node)
	lost = time.Now()
	r.Delete(node)
	replaced = r.await(moved, job+" has other places")
	r.clear(job)
	block.release()
	taints := node.Spec.Taints
	node.ResourceVersion, node.UID = "", ""
	r.Create(node)
	r.Change(node, func() { node.Spec.Taints = taints })
	return lost, replaced
}

// preempted: kube-scheduler has pods of the gang go for a more urgent one, from the first that is preempted so.
func (r *races) preempted(job string) (lost, replaced time.Time) {
	node := r.createPlaced(job)
	r.untilRunning(job, 5)
	preempted := r.pods.next(func(o client.Object) bool {
		pod := o.(*corev1.Pod)
		return pod.Spec.NodeName == node && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	})
	moved := r.moved(job, node)
	urgent := r.podOn(r.Namespace+"-urgent", "", 8)
	urgent.Spec.PriorityClassName = r.Namespace
	urgent.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	r.Create(urgent)
	lost, replaced = r.await(preempted, "kube-scheduler preempts"), r.await(moved, job+" has other places")
	r.clear(job, urgent)
	return lost, replaced
}

// refused: a pod of somebody else on the node wants none of the gang beside it, which only kube-scheduler knows.
func (r *races) refused(job string) (lost, replaced time.Time) {
	block := r.blockPods()
	node := r.createPlaced(job)
	refusal := r.pods.next(func(o client.Object) bool {
		pod := o.(*corev1.Pod)
		return pod.Name != "hermit" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		})
	})
	moved := r.moved(job, node)
	hermit := r.podOn("hermit", node, 0)
	hermit.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, Namespaces: []string{r.Namespace},
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "jobset.sigs.k8s.io/jobset-name", Operator: metav1.LabelSelectorOpExists}}}}}}}
	r.Create(hermit)
	block.release()
	lost, replaced = r.await(refusal, "kube-scheduler refuses the place"), r.await(moved, job+" has other places")
	r.clear(job, hermit)
	return lost, replaced
}

// await gives the moment once it has come.
func (r *races) await(observed <-chan time.Time, what string) time.Time {
	r.Helper()
	select {
	case at := <-observed:
		return at
	case <-time.After(harness.Patience):
		r.Fatalf("waited %s until %s: %s", harness.Patience, what, r.State())
		return time.Time{}
	}
}

// observer tells when something of the namespace's objects of a kind is observed first.
type observer struct {
	mu        sync.Mutex
	condition func(client.Object) bool
	observed  chan time.Time
}

func (w *world) observe(list client.ObjectList) *observer {
	w.Helper()
	o := &observer{}
	w.Follow(list, func(event watch.Event) {
		if o.condition != nil && event.Type != watch.Deleted && o.condition(event.Object.(client.Object)) {
			o.observed <- time.Now()
			o.condition = nil
		}
	}, &o.mu)
	return o
}

// next gives the moment at which the condition holds for one of the objects, from now on. It is for one at a time.
func (o *observer) next(condition func(client.Object) bool) <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.condition, o.observed = condition, make(chan time.Time, 1)
	return o.observed
}
