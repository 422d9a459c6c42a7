package report

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
)

// tryCohort writes the share of a cohort, which is all that its status has.
func (qsw *QueueStatusWriter) tryCohort(ctx context.Context, name string, u engine.Usage) (wrote bool, err error) {
	var seen kueue.Cohort
	if err := qsw.client.Get(ctx, client.ObjectKey{Name: name}, &seen); err != nil {
		return false, client.IgnoreNotFound(err) // many cohorts exist only as names in ClusterQueues
	}
	desired := seen.DeepCopy()
	desired.Status.FairSharing = shareStatus(u.Share)
	return qsw.patch(ctx, &seen, desired, equality.Semantic.DeepEqual(seen.Status, desired.Status))
}

func shareStatus(share *int64) *kueue.FairSharingStatus {
	if share == nil {
		return nil
	}
	return &kueue.FairSharingStatus{WeightedShare: *share}
}

// consumptionStatus returns the usage of a LocalQueue for its status, where it survives restarts of the operator.
func consumptionStatus(c *engine.Consumption) *kueue.LocalQueueFairSharingStatus {
	if c == nil {
		return nil
	}
	out := &kueue.AdmissionFairSharingStatus{LastUpdate: metav1.NewTime(c.At.Truncate(time.Second))} // as stored
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		if out.ConsumedResources == nil {
			out.ConsumedResources = corev1.ResourceList{}
		}
		out.ConsumedResources[corev1.ResourceName(name)] = quantityOf(corev1.ResourceName(name), c.Resources[name])
	}
	return &kueue.LocalQueueFairSharingStatus{AdmissionFairSharingStatus: out}
}

// quantityOf converts units into a Quantity. Bytes and large amounts are rounded to integers, all else to billionths,
// since slowly decaying usage grows by little at a time.
func quantityOf(name corev1.ResourceName, units float64) resource.Quantity {
	const many = math.MaxInt64 / 2e9
	switch {
	case units >= math.MaxInt64:
		return quota.ToQuantity(corev1.ResourcePods, math.MaxInt64)
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || units > many:
		return *resource.NewQuantity(int64(math.Round(units)), resource.DecimalSI)
	default:
		return *resource.NewScaledQuantity(int64(math.Round(units*1e9)), resource.Nano)
	}
}
