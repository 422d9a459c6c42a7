//go:build bench

package placement

import (
	"fmt"
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
	// maxReplacement bounds the time from the loss of a place, as the API server shows it, to the new places in the
	// Workload.
	maxReplacement = time.Second
)

// TestLostRaces measures how soon a job that has lost one of its places gets others, before and after its pods were
// created.
func TestLostRaces(t *testing.T) {
	w := newWorld(t)
	nodes := w.rackOf("r0", 4)
	w.queue()
	w.Shared(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 1000})
	r := &races{world: w, nodes: nodes, pods: w.observe(&corev1.PodList{}), workloads: w.observe(&kueue.WorkloadList{})}

	r.measure("capacity taken by another pod before the pods exist", r.capacityTaken)
	r.measure("node deleted before the pods exist", r.nodeDeleted)
	r.measure("pods preempted by kube-scheduler", r.preempted)
	r.measure("place refused by kube-scheduler, believed after 0.5 s", r.refused)
}

// races runs rounds, in each of which a job that has its places loses one of them.
type races struct {
	*world
	nodes           []string
	pods, workloads *observer
}

// measure runs the rounds and prints the median and the longest time to the new places. lost is the time at which the
// API server shows that the job has lost a place, or an earlier one, and replaced that at which it shows the new
// places.
func (r *races) measure(what string, round func(job string) (lost, replaced time.Time)) {
	r.Helper()
	var durations []time.Duration
	for i := range raceRounds {
		lost, replaced := round(fmt.Sprintf("a%d", i))
		durations = append(durations, replaced.Sub(lost))
	}
	slices.Sort(durations)
	median, longest := durations[len(durations)/2], durations[len(durations)-1]
	figure.Reach(r.T, what+": median, longest", fmt.Sprintf("%.3f s, %.3f s", median.Seconds(), longest.Seconds()),
		figure.Seconds(maxReplacement), longest <= maxReplacement)
}

// createPlaced creates a gang of five pods, waits until it has places on three of the four nodes, at most two on each,
// and returns the first of these nodes by name.
func (r *races) createPlaced(job string) (node string) {
	r.Helper()
	r.Create(r.gang(job, "q", 5, 3, time.Hour))
	return firstNode(harness.PlacesOf(r.UntilWorkloadOf(job, "is admitted", admitted)))
}

// moved returns a channel that receives the time at which the job is seen to have no place on the node any more.
func (r *races) moved(job, node string) <-chan time.Time {
	return r.workloads.next(func(o client.Object) bool {
		wl := o.(*kueue.Workload)
		owner := metav1.GetControllerOf(wl)
		return owner != nil && owner.Name == job && admitted(wl) && harness.PlacesOf(wl)[node] == 0
	})
}

// clear deletes the job and the other objects of a round, and waits until the nodes are free.
func (r *races) clear(job string, others ...client.Object) {
	r.Helper()
	r.Delete(r.gang(job, "q", 0, 0, 0))
	for _, o := range others {
		r.Delete(o)
	}
	harness.Until(r.World, &kueue.WorkloadList{}, "there are no Workloads",
		func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
	harness.Until(r.Everywhere(), &corev1.PodList{}, "the nodes are empty", func(list *corev1.PodList) bool {
		return !slices.ContainsFunc(list.Items,
			func(pod corev1.Pod) bool { return slices.Contains(r.nodes, pod.Spec.NodeName) })
	})
}

// capacityTaken is a round in which a pod without a queue fills the node before the gang's pods are created.
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

// nodeDeleted is a round in which the node is deleted before the gang's pods are created.
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

// preempted is a round in which kube-scheduler preempts pods of the gang for one of higher priority. It counts from the
// first pod with the condition DisruptionTarget.
func (r *races) preempted(job string) (lost, replaced time.Time) {
	node := r.createPlaced(job)
	r.untilRunning(job, 5)
	preempted := r.pods.next(func(o client.Object) bool {
		pod := o.(*corev1.Pod)
		return pod.Spec.NodeName == node &&
			slices.ContainsFunc(pod.Status.Conditions,
				func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
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

// refused is a round in which kube-scheduler refuses the node because of the anti-affinity of another pod there, which
// Muster does not consider. It counts from the first unschedulable pod.
func (r *races) refused(job string) (lost, replaced time.Time) {
	block := r.blockPods()
	node := r.createPlaced(job)
	refusal := r.pods.next(func(o client.Object) bool {
		pod := o.(*corev1.Pod)
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		})
	})
	moved := r.moved(job, node)
	hermit := r.podOn("hermit", node, 0)
	hermit.Spec.Affinity = antiAffinityToJobSets(r.Namespace)
	r.Create(hermit)
	block.release()
	lost, replaced = r.await(refusal, "kube-scheduler refuses the place"), r.await(moved, job+" has other places")
	r.clear(job, hermit)
	return lost, replaced
}

// await returns the time that the channel receives.
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

// observer reports the time of the first event of the namespace's objects of a kind for which a condition holds.
type observer struct {
	mu        sync.Mutex
	condition func(client.Object) bool
	observed  chan time.Time
}

// observe returns an observer of the objects whose list is given.
func (w *world) observe(list client.ObjectList) *observer {
	w.Helper()
	o := &observer{}
	harness.Follow(w.World, list, func(event watch.Event) {
		if o.condition != nil && event.Type != watch.Deleted && o.condition(event.Object.(client.Object)) {
			o.observed <- time.Now()
			o.condition = nil
		}
	}, &o.mu)
	return o
}

// next returns a channel that receives the time of the next event of an object for which the condition holds. It
// replaces the condition of an earlier call.
func (o *observer) next(condition func(client.Object) bool) <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.condition, o.observed = condition, make(chan time.Time, 1)
	return o.observed
}
