package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/podspec"
)

func TestConsumptionSurvivesARestart(t *testing.T) {
	for _, c := range []engine.Consumption{
		{Resources: fair.Consumption{"cpu": 1.5, "memory": 1 << 40, "gpu": 0.000343955}, At: admissiontest.Now},
		{Resources: fair.Consumption{"cpu": 1 << 52}, At: admissiontest.Now},
		{Resources: fair.Consumption{}, At: admissiontest.Now},
	} {
		q := admissiontest.NewLocalQueue("q", "cq")
		localQueueStatus(q, nil, dependencies{}, engine.Usage{Consumption: &c}, admissiontest.Now)
		got := translate.New(podspec.Counting{}, translate.QueuePolicy{}, 5*time.Second).Changed(q,
			admissiontest.Now)[0].(engine.LocalQueueSet)
		if diff := cmp.Diff(c, engine.Consumption{Resources: got.Consumed, At: got.ConsumedAt}); diff != "" {
			t.Errorf("consumption read back (-want +got):\n%s", diff)
		}
	}
	q := admissiontest.NewLocalQueue("q", "cq")
	localQueueStatus(q, nil, dependencies{},
		engine.Usage{Consumption: &engine.Consumption{Resources: fair.Consumption{"cpu": 1e300}, At: admissiontest.Now}},
		admissiontest.Now)
	if got := translate.New(podspec.Counting{}, translate.QueuePolicy{}, 5*time.Second).Changed(q,
		admissiontest.Now)[0].(engine.LocalQueueSet).Consumed["cpu"]; got < 9e18 {
		t.Errorf("the largest consumption is read back as %v, want it saturated", got)
	}
}

func TestSharesAreWrittenOnlyWhereTheyChanged(t *testing.T) {
	w := admissiontest.NewWorld(t, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "lab"}},
		admissiontest.NewClusterQueue("cq", "2"), admissiontest.NewFlavor("f"))
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	s := NewQueueStatusWriter(w, clock, decisions.NewWriteBudget(clock), admissiontest.QueueStatusInterval)
	for _, queue := range []client.Object{admissiontest.NewClusterQueue("cq", "2")} {
		s.Observe(queue, nil)
	}
	for _, share := range []int64{0, 0, 334, 334} {
		s.Note(StatusOf{OfCohort, engine.Key{Name: "lab"}}, engine.Usage{Share: &share})
		s.Note(StatusOf{OfCohort, engine.Key{Name: "only-named"}}, engine.Usage{Share: &share})
		s.Note(StatusOf{OfClusterQueue, engine.Key{Name: "cq"}}, engine.Usage{Share: &share})
		for _, key := range []StatusOf{{Kind: OfCohort, Key: engine.Key{Name: "lab"}},
			{Kind: OfCohort, Key: engine.Key{Name: "only-named"}}, {Kind: OfClusterQueue, Key: engine.Key{Name: "cq"}}} {
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
	if err := w.Get(t.Context(), client.ObjectKey{Name: "lab"}, &cohort); err != nil ||
		cohort.Status.FairSharing.WeightedShare != 334 {
		t.Errorf("status of the cohort = %+v, %v, want a share of 334", cohort.Status, err)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &queue); err != nil ||
		queue.Status.FairSharing.WeightedShare != 334 {
		t.Errorf("status of the ClusterQueue = %+v, %v, want a share of 334", queue.Status, err)
	}
}
