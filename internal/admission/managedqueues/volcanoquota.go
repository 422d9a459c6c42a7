package managedqueues

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// volcanoCohort is the cohort of the Volcano Queues' ClusterQueues. Its own quota is what the cluster has and no
// Queue deserves.
const volcanoCohort = "volcano"

// highestQueuePriority is the highest value of a ClusterQueue's priority annotation.
const highestQueuePriority = 100

// volcanoKind is the kind of a Volcano Queue.
var volcanoKind = scheduling.GroupVersion.WithKind("Queue")

// clusterQueue returns the ClusterQueue for a Volcano Queue. cluster is what the cluster has of each resource, nil if
// that is not known.
//
// What the Queue deserves or is guaranteed is its nominal quota, which it may reclaim from borrowers. What is
// guaranteed is not lent. Beyond its nominal quota it borrows, up to its capability. Resources that the Queue does not
// name are covered too, without nominal quota: using them does not keep the Queue from reclaiming the resources that it
// names.
func (v *volcanoTree) clusterQueue(q *scheduling.Queue, cluster corev1.ResourceList) *kueue.ClusterQueue {
	quota, nominal := corev1.ResourceList{}, v.nominal(q)
	for _, list := range []corev1.ResourceList{cluster, q.Spec.Capability, q.Spec.Deserved, q.Spec.Guarantee.Resource} {
		for name := range list {
			quota[name] = nominal[name]
		}
	}
	out := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: q.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(q, volcanoKind)}},
		Spec: kueue.ClusterQueueSpec{
			Cohort:            kueue.CohortReference(v.cohortOf(q)),
			QueueingStrategy:  kueue.BestEffortFIFO,
			NamespaceSelector: &metav1.LabelSelector{},
			Preemption: &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny,
				WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
			FairSharing: weightOf(q),
		},
	}
	if q.Spec.DequeueStrategy == scheduling.DequeueStrategyFIFO {
		out.Spec.QueueingStrategy = kueue.StrictFIFO
	}
	if len(quota) > 0 {
		group := groupOf(quota)
		for i := range group.Flavors[0].Resources {
			limit(&group.Flavors[0].Resources[i], q)
		}
		out.Spec.ResourceGroups = []kueue.ResourceGroup{group}
	}
	if q.Spec.Priority > 0 {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, muster.QueuePriorityAnnotation,
			strconv.Itoa(int(min(q.Spec.Priority, highestQueuePriority))))
	}
	if !ptr.Deref(q.Spec.Reclaimable, true) {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, muster.PreemptibleAnnotation, "false")
	}
	return out
}

// weightOf returns the weight of the Queue among the Queues with the same parent.
func weightOf(q *scheduling.Queue) *kueue.FairSharing {
	return &kueue.FairSharing{Weight: resource.NewQuantity(int64(cmp.Or(q.Spec.Weight, 1)), resource.DecimalSI)}
}

// ignoredOf returns the fields of a Queue's spec that have no effect on its ClusterQueue, each with the reason. parent
// is that for the parent, "" if that has an effect.
func ignoredOf(spec *scheduling.QueueSpec, parent string) (out []string) {
	if parent != "" {
		out = append(out, parent)
	}
	if spec.Affinity != nil {
		out = append(out, "affinity, which only Volcano's scheduler supports")
	}
	if len(spec.ExtendClusters) > 0 {
		out = append(out, "extendClusters, because jobs are not sent to other clusters")
	}
	if spec.Priority > highestQueuePriority {
		out = append(out, fmt.Sprintf("priority above %d, which counts as the limit", highestQueuePriority))
	}
	return out
}

// boundQuantities bounds the quantities of the Queue's spec, so that sums and differences of them are cheap: Volcano's
// definition of Queues accepts a quantity such as 1e2147483647.
func boundQuantities(q *scheduling.Queue) {
	for _, list := range []corev1.ResourceList{q.Spec.Capability, q.Spec.Deserved, q.Spec.Guarantee.Resource} {
		for name, amount := range list {
			list[name] = podspec.Bounded(amount)
		}
	}
}

// nominalOf returns the nominal quota of a resource: what the Queue deserves or is guaranteed, whichever is more, but
// not more than its capability.
func nominalOf(q *scheduling.Queue, name corev1.ResourceName) resource.Quantity {
	own := q.Spec.Deserved[name]
	if guaranteed := q.Spec.Guarantee.Resource[name]; guaranteed.Cmp(own) > 0 {
		own = guaranteed
	}
	if most, limited := q.Spec.Capability[name]; limited && most.Cmp(own) < 0 {
		own = most
	}
	return own
}

// limit sets how much of a resource the Queue may borrow and lend.
func limit(quota *kueue.ResourceQuota, q *scheduling.Queue) {
	if most, limited := q.Spec.Capability[quota.Name]; limited {
		most.Sub(quota.NominalQuota)
		quota.BorrowingLimit = ptr.To(canonical(most))
	}
	if guaranteed, kept := q.Spec.Guarantee.Resource[quota.Name]; kept {
		lent := quota.NominalQuota.DeepCopy()
		lent.Sub(guaranteed)
		if lent.Sign() < 0 {
			lent = resource.Quantity{}
		}
		quota.LendingLimit = ptr.To(canonical(lent))
	}
}

// sharedQuota returns, by name, what the cluster has of each resource beyond the nominal quotas of the Queues, and of
// the Cohorts of the Queues that are parents.
func sharedQuota(cluster corev1.ResourceList, queues map[string]*kueue.ClusterQueue,
	cohorts map[string]*kueue.Cohort) corev1.ResourceList {
	left := cluster.DeepCopy()
	take := func(groups []kueue.ResourceGroup) {
		for _, group := range groups {
			for _, quota := range group.Flavors[0].Resources {
				if has, ok := left[quota.Name]; ok {
					has.Sub(quota.NominalQuota)
					left[quota.Name] = positive(has)
				}
			}
		}
	}
	for _, q := range queues {
		take(q.Spec.ResourceGroups)
	}
	for _, cohort := range cohorts {
		take(cohort.Spec.ResourceGroups)
	}
	return left
}

// quotaOfNodes returns the quota of the default queue, which follows the nodes; nil if a user made the queue of that
// name.
func quotaOfNodes(q *kueue.ClusterQueue) corev1.ResourceList {
	if q.Labels[muster.FollowsNodesLabel] == "" {
		return nil
	}
	out := corev1.ResourceList{}
	for _, group := range q.Spec.ResourceGroups {
		for _, quota := range group.Flavors[0].Resources {
			out[quota.Name] = quota.NominalQuota
		}
	}
	return out
}

// volcanoStatus returns the status of a Volcano Queue. q is the ClusterQueue of its name, nil if there is none yet;
// completed is the number of finished Workloads in it.
func volcanoStatus(before scheduling.QueueStatus, q *kueue.ClusterQueue, completed int32) scheduling.QueueStatus {
	out := scheduling.QueueStatus{State: scheduling.QueueStateUnknown, Reservation: before.Reservation,
		Completed: completed}
	if q == nil {
		return out
	}
	s := &q.Status
	out.State = scheduling.QueueStateOpen
	if workload.Closed(q) {
		out.State = scheduling.QueueStateClosed
		if s.AdmittedWorkloads > 0 {
			out.State = scheduling.QueueStateClosing
		}
	} else if active := meta.FindStatusCondition(s.Conditions, kueue.ClusterQueueActive); active != nil &&
		active.Status == metav1.ConditionFalse {
		out.State = scheduling.QueueStateUnknown
	}
	out.Pending, out.Running, out.Inqueue = s.PendingWorkloads, s.AdmittedWorkloads,
		max(0, s.ReservingWorkloads-s.AdmittedWorkloads)
	for _, flavor := range s.FlavorsReservation {
		for _, used := range flavor.Resources {
			sum := out.Allocated[used.Name]
			if sum.Add(used.Total); sum.Sign() > 0 {
				if out.Allocated == nil {
					out.Allocated = corev1.ResourceList{}
				}
				out.Allocated[used.Name] = sum
			}
		}
	}
	return out
}
