package config

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/config/v1alpha1"
)

// Default returns the configuration of an operator without a file.
func Default() *v1alpha1.Configuration {
	c := &v1alpha1.Configuration{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ConfigurationAPIVersion,
		Kind: v1alpha1.ConfigurationKind}}
	complete(c)
	return c
}

// complete sets the defaults of absent fields, as the documentation of each field says.
func complete(c *v1alpha1.Configuration) {
	setDefault(&c.WaitForPodsReady, v1alpha1.WaitForPodsReady{})
	setDefault(&c.ObjectRetentionPolicies, v1alpha1.ObjectRetentionPolicies{})
	setDefault(&c.ObjectRetentionPolicies.Workloads, v1alpha1.WorkloadRetentionPolicy{})
	setDefault(&c.Resources, v1alpha1.Resources{})
	setDefault(&c.QueueStatus, v1alpha1.QueueStatus{})
	setDefault(&c.BatchJob, v1alpha1.BatchJob{})
	setDefault(&c.Gangs, v1alpha1.Gangs{})
	setDefault(&c.Placement, v1alpha1.Placement{})
	setDefault(&c.DefaultQueue, v1alpha1.DefaultQueue{})
	setDefault(&c.NodeFailure, v1alpha1.NodeFailure{})
	setDefault(&c.TrainingJob, v1alpha1.TrainingJob{})
	setDefault(&c.Elasticity, v1alpha1.Elasticity{})

	completeWaitForPodsReady(c.WaitForPodsReady)
	if sharing := c.FairSharing; sharing != nil && len(sharing.PreemptionStrategies) == 0 {
		sharing.PreemptionStrategies = []v1alpha1.PreemptionStrategy{v1alpha1.LessThanOrEqualToFinalShare,
			v1alpha1.LessThanInitialShare}
	}
	if sharing := c.AdmissionFairSharing; sharing != nil {
		setDefault(&sharing.UsageSamplingInterval, metav1.Duration{Duration: 5 * time.Minute})
	}
	setDefault(&c.Resources.QuotaCheckStrategy, v1alpha1.BlockUndeclared)
	for i := range c.Resources.Transformations {
		setDefault(&c.Resources.Transformations[i].Strategy, v1alpha1.Retain)
	}
	setDefault(&c.QueueStatus.Interval, metav1.Duration{Duration: 5 * time.Second})
	setDefault(&c.BatchJob.Webhook, false)
	setDefault(&c.Gangs.Native, v1alpha1.NativeGangsAuto)
	setDefault(&c.Volcano, v1alpha1.VolcanoAuto)
	setDefault(&c.LatticeJob, v1alpha1.LatticeJob{})
	setDefault(&c.LatticeJob.Immutable, v1alpha1.ImmutableWarn)
	setDefault(&c.LatticeJob.GPUs, v1alpha1.GPUResourcesAuto)
	setDefault(&c.LatticeJob.RequireMesh, false)
	setDefault(&c.LatticeJob.RequireTracing, false)
	setDefault(&c.LatticeJob.SpreadBy, corev1.LabelHostname)
	setDefault(&c.Placement.Webhook, false)
	setDefault(&c.DefaultQueue.Capacity, v1alpha1.CapacityNodes)
	setDefault(&c.DefaultQueue.NodesOnDemand, v1alpha1.NodesOnDemandDetect)
	setDefault(&c.NodeFailure.NotReadyGrace, metav1.Duration{Duration: 5 * time.Second})
	setDefault(&c.TrainingJob.Group, breezeml.DefaultGroup)
	setDefault(&c.TrainingJob.PendingTimeout, metav1.Duration{Duration: 5 * time.Minute})
	setDefault(&c.TrainingJob.Cooldown, metav1.Duration{Duration: 3 * time.Hour})
	setDefault(&c.Elasticity.GrowAfter, metav1.Duration{Duration: 30 * time.Second})
	setDefault(&c.Elasticity.ResizeCost, metav1.Duration{Duration: 30 * time.Second})
	setDefault(&c.Backfill, v1alpha1.BackfillNone)
	setDefault(&c.Reservations, 1)
}

func completeWaitForPodsReady(w *v1alpha1.WaitForPodsReady) {
	setDefault(&w.Enable, true)
	setDefault(&w.Timeout, metav1.Duration{Duration: 30 * time.Minute})
	setDefault(&w.RecoveryTimeout, *w.Timeout)
	setDefault(&w.BlockAdmission, v1alpha1.BlockNone)
	setDefault(&w.RequeuingStrategy, v1alpha1.RequeuingStrategy{})
	setDefault(&w.RequeuingStrategy.Timestamp, v1alpha1.EvictionTimestamp)
	setDefault(&w.RequeuingStrategy.BackoffBaseSeconds, 60)
	setDefault(&w.RequeuingStrategy.BackoffMaxSeconds, 3600)
}

// setDefault sets the field to the value if it is nil.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
