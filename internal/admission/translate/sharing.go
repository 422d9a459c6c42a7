package translate

import (
	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// fairSharingOf translates the configuration of Fair Sharing within cohorts, nil for off.
func fairSharingOf(cfg *config.FairSharing) *engine.FairSharing {
	if cfg == nil {
		return nil
	}
	out := &engine.FairSharing{}
	for _, strategy := range cfg.PreemptionStrategies {
		out.Strategies = append(out.Strategies, map[config.PreemptionStrategy]preempt.Strategy{
			config.LessThanOrEqualToFinalShare: preempt.LessThanOrEqualToFinalShare,
			config.LessThanInitialShare:        preempt.LessThanInitialShare,
		}[strategy])
	}
	return out
}

// AdmissionFairSharingOf translates the configuration of ordering by the usage of LocalQueues, nil for off.
func AdmissionFairSharingOf(cfg *config.AdmissionFairSharing) *engine.AdmissionFairSharing {
	if cfg == nil {
		return nil
	}
	out := &engine.AdmissionFairSharing{
		HalfLife: cfg.UsageHalfLifeTime.Duration, Interval: cfg.UsageSamplingInterval.Duration, Weights: map[string]float64{}}
	for name, weight := range cfg.ResourceWeights {
		out.Weights[string(name)] = weight
	}
	return out
}

// WeightOf returns the weight of a queue or cohort, nil if it sets none.
func WeightOf(sharing *kueue.FairSharing) *quota.Weight {
	if sharing == nil || sharing.Weight == nil {
		return nil
	}
	return new(quota.WeightOf(*sharing.Weight))
}

// Remember copies the usage in the status of a LocalQueue.
func Remember(into *engine.LocalQueue, status *kueue.LocalQueueFairSharingStatus) {
	if status == nil || status.AdmissionFairSharingStatus == nil {
		return
	}
	into.Consumed = fair.Consumption{}
	for name, amount := range status.AdmissionFairSharingStatus.ConsumedResources {
		into.Consumed[string(name)] = amount.AsApproximateFloat64()
	}
	into.ConsumedAt = status.AdmissionFairSharingStatus.LastUpdate.Time
}
