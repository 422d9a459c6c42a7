package translate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// ClusterQueue translates a ClusterQueue for the engine.
func (t *Translator) ClusterQueue(q *kueue.ClusterQueue) engine.ClusterQueue {
	out := engine.ClusterQueue{
		Name:       q.Name,
		Cohort:     string(q.Spec.Cohort),
		Quotas:     quotasOf(q.Spec.ResourceGroups),
		Namespaces: q.Spec.NamespaceSelector,
		Stopped:    workload.Closed(q),
		Preemption: preemptionOf(q.Spec.Preemption),
		Weight:     WeightOf(q.Spec.FairSharing),
	}
	markUnnamed(out.Quotas, q)
	out.Preemption.Standing = standingOf(q)
	if scope := q.Spec.AdmissionScope; scope != nil {
		out.ByUsage = scope.AdmissionMode == kueue.UsageBasedAdmissionFairSharing
	}
	_, out.Inactive = CannotAdmit(q, t.checks)
	switch _, followsNodes := q.Labels[muster.FollowsNodesLabel]; {
	case q.Spec.QueueingStrategy == kueue.StrictFIFO:
		out.Strategy = engine.Strict
	case followsNodes:
		// Users did not choose a strategy here, so no workload may starve, and none waits that could run meanwhile.
		out.Backfill = backfills(q, true)
	default:
		out.Backfill = backfills(q, t.policy.backfillsByDefault)
	}
	out.Durations = durationsOf(q)
	out.OnDemand = q.Annotations[muster.NodesOnDemandAnnotation] == "true"
	out.CoversAll = q.Annotations[muster.UnlimitedAnnotation] == "true"
	if f := q.Spec.FlavorFungibility; f != nil {
		out.Fungibility = flavor.Fungibility{
			NextBeforeBorrowing:       f.WhenCanBorrow == kueue.TryNextFlavor,
			NextBeforePreempting:      f.WhenCanPreempt != kueue.Preempt && f.WhenCanPreempt != kueue.MayStopSearch,
			PreemptsRatherThanBorrows: ptr.Deref(f.Preference, "") == kueue.PreemptionOverBorrowing,
		}
	} else {
		out.Fungibility.NextBeforePreempting = true
	}
	for _, g := range q.Spec.ResourceGroups {
		var group flavor.Group
		for _, resource := range g.CoveredResources {
			group.Resources = append(group.Resources, string(resource))
		}
		for _, f := range g.Flavors {
			group.Flavors = append(group.Flavors, string(f.Name))
		}
		out.Groups = append(out.Groups, group)
	}
	for _, rule := range lifecycle.CheckRules(&q.Spec) {
		check := engine.Check{Name: string(rule.Name)}
		for _, name := range rule.OnFlavors {
			check.Flavors = append(check.Flavors, string(name))
		}
		out.Checks = append(out.Checks, check)
	}
	return out
}

// CannotAdmit returns why a ClusterQueue cannot admit, as the reason and message of its Active condition; "" if it can.
func CannotAdmit(q *kueue.ClusterQueue, checks map[string]*kueue.AdmissionCheck) (reason, message string) {
	if !q.DeletionTimestamp.IsZero() {
		return kueue.ClusterQueueActiveReasonTerminating, lifecycle.TerminatingMessage
	}
	// The API server refuses an invalid selector, but the object may be older than the validation.
	if err := selectorProblem(q.Spec.NamespaceSelector); err != nil {
		return kueue.ClusterQueueActiveReasonUnknown,
			fmt.Sprintf("Can't admit new workloads: its namespaceSelector is invalid and must be changed: %v", err)
	}
	return lifecycle.ChecksProblem(&q.Spec, checks)
}

// selectorProblem returns what is wrong with a selector. It is deterministic: of several invalid labels it reports the
// first by name.
func selectorProblem(selector *metav1.LabelSelector) error {
	if selector == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		one := &metav1.LabelSelector{MatchLabels: map[string]string{key: selector.MatchLabels[key]}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			return err
		}
	}
	_, err := metav1.LabelSelectorAsSelector(selector)
	return err
}

// preemptionOf translates which workloads a queue's own may preempt.
func preemptionOf(p *kueue.ClusterQueuePreemption) preempt.Policy {
	if p == nil {
		return preempt.Policy{}
	}
	rules := map[kueue.PreemptionPolicy]preempt.Rule{
		kueue.PreemptionPolicyLowerPriority:             preempt.LowerPriority,
		kueue.PreemptionPolicyLowerOrNewerEqualPriority: preempt.LowerOrNewerEqualPriority,
		kueue.PreemptionPolicyAny:                       preempt.Any,
	}
	out := preempt.Policy{WithinQueue: rules[p.WithinClusterQueue], Reclaim: rules[p.ReclaimWithinCohort]}
	if b := p.BorrowWithinCohort; b != nil && b.Policy == kueue.BorrowWithinCohortPolicyLowerPriority {
		out.WhileBorrowing, out.Threshold = true, b.MaxPriorityThreshold
	}
	return out
}

func quotasOf(groups []kueue.ResourceGroup) quota.Quotas {
	out := quota.Quotas{}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				limits := quota.Limits{
					Nominal:   quota.FromQuantity(r.Name, r.NominalQuota),
					Borrowing: quota.Unlimited,
					Lending:   quota.Unlimited,
				}
				if r.BorrowingLimit != nil {
					limits.Borrowing = quota.FromQuantity(r.Name, *r.BorrowingLimit)
				}
				if r.LendingLimit != nil {
					limits.Lending = quota.FromQuantity(r.Name, *r.LendingLimit)
				}
				out[quota.FlavorResource{Flavor: string(f.Name), Resource: string(r.Name)}] = limits
			}
		}
	}
	return out
}

// markUnnamed marks, in the ClusterQueue of a Volcano Queue, the resources that the Queue does not name in what it
// deserves: they have no nominal quota there.
func markUnnamed(quotas quota.Quotas, q *kueue.ClusterQueue) {
	owner := metav1.GetControllerOf(q)
	if owner == nil || owner.APIVersion != volcano.GroupVersion.String() || owner.Kind != "Queue" {
		return
	}
	for fr, limits := range quotas {
		limits.Unnamed = limits.Nominal == 0
		quotas[fr] = limits
	}
}

// standingOf translates how the ClusterQueue ranks against the others of its cohort. A priority that is not a number is
// refused by validation, and counts as 0 here.
func standingOf(q *kueue.ClusterQueue) preempt.Standing {
	rank, err := strconv.ParseInt(q.Annotations[muster.QueuePriorityAnnotation], 10, 32)
	if err != nil || rank < 0 {
		rank = 0
	}
	return preempt.Standing{Rank: int32(rank), Protected: q.Annotations[muster.PreemptibleAnnotation] == "false"}
}

// Stopped reports whether the policy keeps a queue from admitting.
func Stopped(policy *kueue.StopPolicy) bool {
	return policy != nil && *policy != kueue.None
}
