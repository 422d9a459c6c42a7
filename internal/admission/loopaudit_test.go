package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/audit"
	"github.com/musterhq/muster/internal/admission/report"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/metrics/metricstest"
)

// TestTheQueueReportsWhatAnAuditFound: the queue reports a difference from the second audit that finds it until it is
// gone. Without a difference nothing is written.
func TestTheQueueReportsWhatAnAuditFound(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewFlavor("f"), admissiontest.NewClusterQueue("cq", "8"))
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	cfg := config.Default()
	cfg.QueueStatus.Interval.Duration = 0
	l := newLoop(manager{feed: &feed{world: w}}, cfg, clock)
	runs := admissiontest.NewWorkload("runs", 3, quantities("cpu", "1"))
	runs.ResourceVersion = "7"
	admissiontest.Admit(runs, admissiontest.Given("cq", 3), admissiontest.Now)
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), runs} {
		l.mailbox.put(message{changed: o})
	}
	l.turn()
	l.audit(t.Context()) // sets the time of the first audit
	said := func() string {
		l.queues.Write(t.Context(), report.StatusOf{Kind: report.OfClusterQueue, Key: engine.Key{Name: "cq"}})
		var q kueue.ClusterQueue
		if err := w.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(q.Status.Conditions, muster.QuotaDiffersCondition); c != nil {
			return c.Message
		}
		return ""
	}
	next := func() string {
		clock.Step(audit.Interval)
		l.audit(t.Context())
		return said()
	}
	if got := said(); got != "" {
		t.Fatalf("before any audit: message = %q, want none", got)
	}
	if got := next(); got != "" {
		t.Errorf("after one audit: message = %q, want none", got)
	}
	if got := next(); !strings.Contains(got, "cpu of flavor f by 3") || !strings.Contains(got, "ns/runs") {
		t.Errorf("after two audits: message = %q, want the difference and its Workload", got)
	}
	const metric = "muster_quota_audit_difference{cluster_queue=cq,flavor=f,resource=cpu}"
	if got := metricstest.Of(t, l.gauges)[metric]; got != 3 {
		t.Errorf("%s = %v, want 3", metric, got)
	}
	writes := len(w.Written())
	if next(); len(w.Written()) != writes {
		t.Errorf("writes = %q, want none for the same difference", w.Written()[writes:])
	}
	stored := runs.DeepCopy()
	stored.ResourceVersion = ""
	if err := w.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "" {
		t.Errorf("after the difference is gone: message = %q, want none", got)
	}
	if writes = len(w.Written()); next() != "" || len(w.Written()) != writes {
		t.Errorf("writes = %q, want none without a difference", w.Written()[writes:])
	}
}
