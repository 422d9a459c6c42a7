package whatif

import (
	"k8s.io/utils/ptr"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
)

// Rank returns the Workload's position among the Workloads that wait in its queue under the configuration, which must
// be complete; in a ClusterQueue that is ordered by usage, RecentUsage comes before it. considered is false if
// something about the Workload itself, such as a backoff or a gate, keeps it out of the queue.
func Rank(w *kueue.Workload, cfg *config.Configuration) (rank order.Rank, considered bool) {
	return order.Rank{
		Priority: ptr.Deref(w.Spec.Priority, 0), First: translate.LostNodes(w),
		Since: translate.QueuePolicyOf(cfg).QueuedAt(w), Key: translate.KeyOf(w),
	}, translate.MayBeAdmitted(w)
}

// RecentUsage returns how much the LocalQueue has used recently, as recorded in its status. In a ClusterQueue that is
// ordered by usage, the LocalQueue with the lower value goes first; for others it returns 0.
func RecentUsage(local *kueue.LocalQueue, cluster *kueue.ClusterQueue, cfg *config.Configuration) float64 {
	sharing, scope := translate.AdmissionFairSharingOf(cfg.AdmissionFairSharing), cluster.Spec.AdmissionScope
	if sharing == nil || scope == nil || scope.AdmissionMode != kueue.UsageBasedAdmissionFairSharing {
		return 0
	}
	used := fair.Consumption{}
	if sharing.HalfLife == 0 {
		for _, flavor := range local.Status.FlavorsReservation {
			for _, r := range flavor.Resources {
				used[string(r.Name)] += r.Total.AsApproximateFloat64()
			}
		}
	} else {
		var known engine.LocalQueue
		translate.Remember(&known, local.Status.FairSharing)
		used = known.Consumed
	}
	return fair.Standing(used.Weighed(sharing.Weights), translate.WeightOf(local.Spec.FairSharing))
}
