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
	c := &v1alpha1.Configuration{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ConfigurationAPIVersion, Kind: v1alpha1.ConfigurationKind}}
	complete(c)
	return c
}

// complete sets the defaults of absent fields, as the documentation of each field says.
func complete(c *v1alpha1.Configuration) {
	present(&c.WaitForPodsReady, v1alpha1.WaitForPodsReady{})
	present(&c.ObjectRetentionPolicies, v1alpha1.ObjectRetentionPolicies{})
	present(&c.ObjectRetentionPolicies.Workloads, v1alpha1.WorkloadRetentionPolicy{})
	present(&c.Resources, v1alpha1.Resources{})
	present(&c.QueueStatus, v1alpha1.QueueStatus{})
	present(&c.BatchJob, v1alpha1.BatchJob{})
	present(&c.Gangs, v1alpha1.Gangs{})
	present(&c.Placement, v1alpha1.Placement{})
	present(&c.DefaultQueue, v1alpha1.DefaultQueue{})
	present(&c.NodeFailure, v1alpha1.NodeFailure{})
	present(&c.TrainingJob, v1alpha1.TrainingJob{})
	present(&c.Elasticity, v1alpha1.Elasticity{})

	completeWaitForPodsReady(c.WaitForPodsReady)
	if sharing := c.FairSharing; sharing != nil && len(sharing.PreemptionStrategies) == 0 {
		sharing.PreemptionStrategies = []v1alpha1.PreemptionStrategy{v1alpha1.LessThanOrEqualToFinalShare, v1alpha1.LessThanInitialShare}
	}
	if sharing := c.AdmissionFairSharing; sharing != nil {
		present(&sharing.UsageSamplingInterval, metav1.Duration{Duration: 5 * time.Minute})
	}
	present(&c.Resources.QuotaCheckStrategy, v1alpha1.BlockUndeclared)
	for i := range c.Resources.Transformations {
		present(&c.Resources.Transformations[i].Strategy, v1alpha1.Retain)
	}
	present(&c.QueueStatus.Interval, metav1.Duration{Duration: 5 * time.Second})
	present(&c.BatchJob.Webhook, false)
	present(&c.Gangs.Native, v1alpha1.NativeGangsAuto)
	present(&c.Volcano, v1alpha1.VolcanoAuto)
	present(&c.LatticeJob, v1alpha1.LatticeJob{})
	present(&c.LatticeJob.Immutable, v1alpha1.ImmutableWarn)
	present(&c.LatticeJob.GPUs, v1alpha1.GPUResourcesAuto)
	present(&c.LatticeJob.RequireMesh, false)
	present(&c.LatticeJob.RequireTracing, false)
	present(&c.LatticeJob.SpreadBy, corev1.LabelHostname)
	present(&c.Placement.Webhook, false)
	present(&c.DefaultQueue.Capacity, v1alpha1.CapacityNodes)
	present(&c.DefaultQueue.NodesOnDemand, v1alpha1.NodesOnDemandDetect)
	present(&c.NodeFailure.NotReadyGrace, metav1.Duration{Duration: 5 * time.Second})
	present(&c.TrainingJob.Group, breezeml.DefaultGroup)
	present(&c.TrainingJob.PendingTimeout, metav1.Duration{Duration: 5 * time.Minute})
	present(&c.TrainingJob.Cooldown, metav1.Duration{Duration: 3 * time.Hour})
	present(&c.Elasticity.GrowAfter, metav1.Duration{Duration: 30 * time.Second})
	present(&c.Elasticity.ResizeCost, metav1.Duration{Duration: 30 * time.Second})
}

func completeWaitForPodsReady(w *v1alpha1.WaitForPodsReady) {
	present(&w.Enable, true)
	present(&w.Timeout, metav1.Duration{Duration: 30 * time.Minute})
	present(&w.RecoveryTimeout, *w.Timeout)
	present(&w.BlockAdmission, v1alpha1.BlockNone)
	present(&w.RequeuingStrategy, v1alpha1.RequeuingStrategy{})
	present(&w.RequeuingStrategy.Timestamp, v1alpha1.EvictionTimestamp)
	present(&w.RequeuingStrategy.BackoffBaseSeconds, 60)
	present(&w.RequeuingStrategy.BackoffMaxSeconds, 3600)
}

// present sets the field to the value if it is nil.
func present[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
