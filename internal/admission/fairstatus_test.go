package admission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

func TestFairSharingOptions(t *testing.T) {
	cfg := config.Default()
	if o := engineOptions(cfg); o.FairSharing != nil || o.AdmissionFairSharing != nil {
		t.Errorf("default options = %+v, want no fair sharing", o)
	}
	cfg.FairSharing = &v1alpha1.FairSharing{PreemptionStrategies: []v1alpha1.PreemptionStrategy{v1alpha1.LessThanOrEqualToFinalShare, v1alpha1.LessThanInitialShare}}
	cfg.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: metav1.Duration{Duration: time.Hour},
		UsageSamplingInterval: &metav1.Duration{Duration: time.Minute}, ResourceWeights: map[corev1.ResourceName]float64{"cpu": 2}}
	got := engineOptions(cfg)
	want := engine.Options{
		FairSharing:          &engine.FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare, preempt.LessThanInitialShare}},
		AdmissionFairSharing: &engine.AdmissionFairSharing{HalfLife: time.Hour, Interval: time.Minute, Weights: map[string]float64{"cpu": 2}},
		Elastic:              elastic.Policy{GrowAfter: 30 * time.Second, ResizeCost: 30 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestWeightsReachTheEngine(t *testing.T) {
	half := &kueue.FairSharing{Weight: ptr.To(resource.MustParse("500m"))}
	cohort := &kueue.Cohort{Spec: kueue.CohortSpec{FairSharing: half}}
	queue, local := newClusterQueue("cq", "1"), newLocalQueue("q", "cq")
	queue.Spec.FairSharing, local.Spec.FairSharing = half, half
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	want := ptr.To(quota.One / 2)
	if got := newTestTranslator().changed(cohort, now)[0].(engine.CohortSet).Weight; !ptr.Equal(got, want) {
		t.Errorf("weight of the cohort = %v, want %v", got, want)
	}
	if got := newTestTranslator().changed(queue, now)[0].(engine.ClusterQueueSet); !ptr.Equal(got.Weight, want) || !got.ByUsage {
		t.Errorf("ClusterQueue has weight %v, by usage %v, want %v and true", got.Weight, got.ByUsage, want)
	}
	if got := newTestTranslator().changed(local, now)[0].(engine.LocalQueueSet).Weight; !ptr.Equal(got, want) {
		t.Errorf("weight of the LocalQueue = %v, want %v", got, want)
	}
}

func TestConsumptionSurvivesARestart(t *testing.T) {
	for _, c := range []engine.Consumption{
		{Resources: fair.Consumption{"cpu": 1.5, "memory": 1 << 40, "gpu": 0.000343955}, At: now},
		{Resources: fair.Consumption{"cpu": 1 << 52}, At: now},
		{Resources: fair.Consumption{}, At: now},
	} {
		q := newLocalQueue("q", "cq")
		localQueueStatus(q, nil, dependencies{}, engine.Usage{Consumption: &c}, now)
		got := newTestTranslator().changed(q, now)[0].(engine.LocalQueueSet)
		if diff := cmp.Diff(c, engine.Consumption{Resources: got.Consumed, At: got.ConsumedAt}); diff != "" {
			t.Errorf("consumption read back (-want +got):\n%s", diff)
		}
	}
	q := newLocalQueue("q", "cq")
	localQueueStatus(q, nil, dependencies{}, engine.Usage{Consumption: &engine.Consumption{Resources: fair.Consumption{"cpu": 1e300}, At: now}}, now)
	if got := newTestTranslator().changed(q, now)[0].(engine.LocalQueueSet).Consumed["cpu"]; got < 9e18 {
		t.Errorf("the largest consumption is read back as %v, want it saturated", got)
	}
}

func TestSharesAreWrittenOnlyWhereTheyChanged(t *testing.T) {
	w := newWorld(t, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}, newClusterQueue("cq", "2"), newFlavor("f"))
	clock := clocktesting.NewFakeClock(now)
	s := newQueueStatusWriter(w, clock, newWriteBudget(clock), queueStatusInterval)
	observeQueues(s, newClusterQueue("cq", "2"))
	for _, share := range []int64{0, 0, 334, 334} {
		s.noteCohort("lab", share)
		s.noteCohort("only-named", share)
		s.noteClusterQueue("cq", engine.Usage{Share: &share})
		for _, key := range []statusOf{{ofCohort, engine.Key{Name: "lab"}}, {ofCohort, engine.Key{Name: "only-named"}}, {ofClusterQueue, engine.Key{Name: "cq"}}} {
			s.write(t.Context(), key)
		}
		clock.Step(queueStatusInterval)
	}
	want := []string{"status Cohort lab", "status ClusterQueue cq", "status Cohort lab", "status ClusterQueue cq"}
	if diff := cmp.Diff(want, w.written()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	var cohort kueue.Cohort
	var queue kueue.ClusterQueue
	if err := w.Get(t.Context(), client.ObjectKey{Name: "lab"}, &cohort); err != nil || cohort.Status.FairSharing.WeightedShare != 334 {
		t.Errorf("status of the cohort = %+v, %v, want a share of 334", cohort.Status, err)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &queue); err != nil || queue.Status.FairSharing.WeightedShare != 334 {
		t.Errorf("status of the ClusterQueue = %+v, %v, want a share of 334", queue.Status, err)
	}
}

// TestTheLoopWakesWhenTheEngineIsDue: usage is sampled by a single timer although no event arrives.
func TestTheLoopWakesWhenTheEngineIsDue(t *testing.T) {
	cfg := config.Default()
	cfg.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: metav1.Duration{Duration: time.Hour},
		UsageSamplingInterval: &metav1.Duration{Duration: 5 * time.Minute}}
	queue := newClusterQueue("cq", "4")
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	w := newWorld(t, queue)
	l := newLoop(manager{feed: &feed{world: w}}, cfg)
	clock := clocktesting.NewFakeClock(now)
	l.clock = clock
	l.setAlarm()
	if l.alarm != nil {
		t.Fatal("an alarm is set although nothing is due")
	}
	for _, o := range []client.Object{namespace.DeepCopy(), newFlavor("f"), queue, newLocalQueue("q", "cq"), newWorkload("a", 2, quantities("cpu", "1"))} {
		l.mailbox.put(message{changed: o})
	}
	l.turn()
	l.setAlarm()
	for range 3 {
		clock.Step(5*time.Minute - time.Second)
		select {
		case <-l.alarm:
			t.Fatal("the alarm fires too early")
		default:
		}
		clock.Step(time.Second)
		<-l.alarm
		l.turn()
		l.setAlarm()
		if clock.Waiters() != 1 {
			t.Fatalf("%d timers are set, want 1", clock.Waiters())
		}
	}
	usage, _ := l.engine.LocalQueueUsage(engine.Key{Namespace: "ns", Name: "q"})
	if usage.Consumption == nil || !usage.Consumption.At.Equal(now.Add(15*time.Minute)) || usage.Consumption.Resources["cpu"] == 0 {
		t.Errorf("consumption = %+v, want one sampled after 15 minutes", usage.Consumption)
	}
}
