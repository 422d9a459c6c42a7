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
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/report"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

func TestFairSharingOptions(t *testing.T) {
	cfg := config.Default()
	if o := translate.EngineOptions(cfg); o.FairSharing != nil || o.AdmissionFairSharing != nil {
		t.Errorf("default options = %+v, want no fair sharing", o)
	}
	cfg.FairSharing = &v1alpha1.FairSharing{PreemptionStrategies: []v1alpha1.PreemptionStrategy{v1alpha1.LessThanOrEqualToFinalShare, v1alpha1.LessThanInitialShare}}
	cfg.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: metav1.Duration{Duration: time.Hour},
		UsageSamplingInterval: &metav1.Duration{Duration: time.Minute}, ResourceWeights: map[corev1.ResourceName]float64{"cpu": 2}}
	got := translate.EngineOptions(cfg)
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
	queue, local := admissiontest.NewClusterQueue("cq", "1"), admissiontest.NewLocalQueue("q", "cq")
	queue.Spec.FairSharing, local.Spec.FairSharing = half, half
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	want := ptr.To(quota.One / 2)
	if got := newSceneTranslator().Changed(cohort, admissiontest.Now)[0].(engine.CohortSet).Weight; !ptr.Equal(got, want) {
		t.Errorf("weight of the cohort = %v, want %v", got, want)
	}
	if got := newSceneTranslator().Changed(queue, admissiontest.Now)[0].(engine.ClusterQueueSet); !ptr.Equal(got.Weight, want) || !got.ByUsage {
		t.Errorf("ClusterQueue has weight %v, by usage %v, want %v and true", got.Weight, got.ByUsage, want)
	}
	if got := newSceneTranslator().Changed(local, admissiontest.Now)[0].(engine.LocalQueueSet).Weight; !ptr.Equal(got, want) {
		t.Errorf("weight of the LocalQueue = %v, want %v", got, want)
	}
}

func TestConsumptionSurvivesARestart(t *testing.T) {
	for _, c := range []engine.Consumption{
		{Resources: fair.Consumption{"cpu": 1.5, "memory": 1 << 40, "gpu": 0.000343955}, At: admissiontest.Now},
		{Resources: fair.Consumption{"cpu": 1 << 52}, At: admissiontest.Now},
		{Resources: fair.Consumption{}, At: admissiontest.Now},
	} {
		q := admissiontest.NewLocalQueue("q", "cq")
		report.LocalQueueStatus(q, nil, report.Dependencies{}, engine.Usage{Consumption: &c}, admissiontest.Now)
		got := newSceneTranslator().Changed(q, admissiontest.Now)[0].(engine.LocalQueueSet)
		if diff := cmp.Diff(c, engine.Consumption{Resources: got.Consumed, At: got.ConsumedAt}); diff != "" {
			t.Errorf("consumption read back (-want +got):\n%s", diff)
		}
	}
	q := admissiontest.NewLocalQueue("q", "cq")
	report.LocalQueueStatus(q, nil, report.Dependencies{}, engine.Usage{Consumption: &engine.Consumption{Resources: fair.Consumption{"cpu": 1e300}, At: admissiontest.Now}}, admissiontest.Now)
	if got := newSceneTranslator().Changed(q, admissiontest.Now)[0].(engine.LocalQueueSet).Consumed["cpu"]; got < 9e18 {
		t.Errorf("the largest consumption is read back as %v, want it saturated", got)
	}
}

func TestSharesAreWrittenOnlyWhereTheyChanged(t *testing.T) {
	w := admissiontest.NewWorld(t, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}, admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewFlavor("f"))
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	s := report.NewQueueStatusWriter(w, clock, decisions.NewWriteBudget(clock), admissiontest.QueueStatusInterval)
	for _, queue := range []client.Object{admissiontest.NewClusterQueue("cq", "2")} {
		s.Observe(queue, nil)
	}
	for _, share := range []int64{0, 0, 334, 334} {
		s.NoteCohort("lab", share)
		s.NoteCohort("only-named", share)
		s.NoteClusterQueue("cq", engine.Usage{Share: &share})
		for _, key := range []report.StatusOf{{Kind: report.OfCohort, Key: engine.Key{Name: "lab"}}, {Kind: report.OfCohort, Key: engine.Key{Name: "only-named"}}, {Kind: report.OfClusterQueue, Key: engine.Key{Name: "cq"}}} {
			s.Write(t.Context(), key)
		}
		clock.Step(admissiontest.QueueStatusInterval)
	}
	want := []string{"status Cohort lab", "status ClusterQueue cq", "status Cohort lab", "status ClusterQueue cq"}
	if diff := cmp.Diff(want, w.Written()); diff != "" {
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
	queue := admissiontest.NewClusterQueue("cq", "4")
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	w := admissiontest.NewWorld(t, queue)
	l := newLoop(manager{feed: &feed{world: w}}, cfg)
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	l.clock = clock
	l.setAlarm()
	if l.alarm != nil {
		t.Fatal("an alarm is set although nothing is due")
	}
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"), queue, admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewWorkload("a", 2, admissiontest.Quantities("cpu", "1"))} {
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
	if usage.Consumption == nil || !usage.Consumption.At.Equal(admissiontest.Now.Add(15*time.Minute)) || usage.Consumption.Resources["cpu"] == 0 {
		t.Errorf("consumption = %+v, want one sampled after 15 minutes", usage.Consumption)
	}
}
