package translate

import (
	"time"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
)

// checkWaitingEvery is the time between two checks of workloads that wait while the engine is at rest. Each evaluates
// one class of workloads, which takes a millisecond or so.
const checkWaitingEvery = time.Second

// EngineOptions returns the options of the engine under the configuration.
func EngineOptions(cfg *config.Configuration) engine.Options {
	out := engine.Options{
		IgnoreUndeclared:     *cfg.Resources.QuotaCheckStrategy == config.IgnoreUndeclared,
		FairSharing:          fairSharingOf(cfg.FairSharing),
		AdmissionFairSharing: AdmissionFairSharingOf(cfg.AdmissionFairSharing),
		CheckWaitingEvery:    checkWaitingEvery,
		Elastic: elastic.Policy{GrowAfter: cfg.Elasticity.GrowAfter.Duration,
			ResizeCost: cfg.Elasticity.ResizeCost.Duration},
		Reservations: int(*cfg.Reservations),
	}
	if *cfg.WaitForPodsReady.Enable {
		out.BlockUntilReady = map[config.BlockAdmission]engine.Block{
			config.BlockQueue: engine.BlockQueue, config.BlockAll: engine.BlockAll,
		}[*cfg.WaitForPodsReady.BlockAdmission]
	}
	return out
}

// QueuePolicyOf returns how the configuration, which must be complete, orders Workloads in a queue.
func QueuePolicyOf(cfg *config.Configuration) QueuePolicy {
	return QueuePolicy{
		requeueByEviction:  *cfg.WaitForPodsReady.RequeuingStrategy.Timestamp == config.EvictionTimestamp,
		backfillsByDefault: *cfg.Backfill == config.BackfillBestEffortFIFO,
	}
}

// QueuePolicy is the part of the configuration that orders Workloads in a queue.
type QueuePolicy struct {
	// requeueByEviction queues a workload that was evicted because its pods were not ready in time by the time of the
	// eviction, behind the workloads that wait already.
	requeueByEviction bool
	// backfillsByDefault makes queues with the strategy BestEffortFIFO plan starts unless their annotation says otherwise.
	backfillsByDefault bool
}
