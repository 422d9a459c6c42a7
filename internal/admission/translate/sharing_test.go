package translate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

func TestFairSharingOptions(t *testing.T) {
	cfg := config.Default()
	if o := EngineOptions(cfg); o.FairSharing != nil || o.AdmissionFairSharing != nil {
		t.Errorf("default options = %+v, want no fair sharing", o)
	}
	cfg.FairSharing = &v1alpha1.FairSharing{PreemptionStrategies: []v1alpha1.PreemptionStrategy{
		v1alpha1.LessThanOrEqualToFinalShare, v1alpha1.LessThanInitialShare}}
	cfg.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: metav1.Duration{Duration: time.Hour},
		UsageSamplingInterval: &metav1.Duration{Duration: time.Minute},
		ResourceWeights:       map[corev1.ResourceName]float64{"cpu": 2}}
	got := EngineOptions(cfg)
	want := engine.Options{
		FairSharing: &engine.FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare,
			preempt.LessThanInitialShare}},
		AdmissionFairSharing: &engine.AdmissionFairSharing{HalfLife: time.Hour, Interval: time.Minute,
			Weights: map[string]float64{"cpu": 2}},
		CheckWaitingEvery: time.Second,
		Elastic:           elastic.Policy{GrowAfter: 30 * time.Second, ResizeCost: 30 * time.Second},
		Reservations:      1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestWeightsReachTheEngine(t *testing.T) {
	half := &kueue.FairSharing{Weight: ptr.To(resource.MustParse("500m"))}
	cohort := &kueue.Cohort{Spec: kueue.CohortSpec{FairSharing: half}}
	queue, local := admissiontest.NewClusterQueue("cq", "1"), admissiontest.NewLocalQueue("q", "cq")
	queue.Spec.FairSharing, local.Spec.FairSharing = half, half
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	want := ptr.To(quota.One / 2)
	if got := newTestTranslator().Changed(cohort, admissiontest.Now)[0].(engine.CohortSet).Weight; !ptr.Equal(got, want) {
		t.Errorf("weight of the cohort = %v, want %v", got, want)
	}
	if got := newTestTranslator().Changed(queue,
		admissiontest.Now)[0].(engine.ClusterQueueSet); !ptr.Equal(got.Weight, want) || !got.ByUsage {
		t.Errorf("ClusterQueue has weight %v, by usage %v, want %v and true", got.Weight, got.ByUsage, want)
	}
	if got := newTestTranslator().Changed(local,
		admissiontest.Now)[0].(engine.LocalQueueSet).Weight; !ptr.Equal(got, want) {
		t.Errorf("weight of the LocalQueue = %v, want %v", got, want)
	}
}
