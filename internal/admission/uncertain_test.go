package admission

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/workload"
)

// TestDroppedDecisionsAreNotWritten: the response to an admission was lost. By the time of the retry, the Workload has
// released its quota, and another one holds it.
func TestDroppedDecisionsAreNotWritten(t *testing.T) {
	a, b := admissiontest.NewWorkload("a", 4, admissiontest.Quantities("cpu", "1")),
		admissiontest.NewWorkload("b", 4, admissiontest.Quantities("cpu", "1"))
	b.Spec.Priority = ptr.To[int32](1)
	objects := []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"), a}
	w := admissiontest.NewWorld(t, objects...)
	l := newLoop(manager{feed: &feed{world: w}}, config.Default(), clock.RealClock{})
	observe := func(objects ...client.Object) {
		for _, o := range objects {
			l.mailbox.put(message{changed: o})
		}
		l.turn()
	}
	observe(objects...)
	w.After = admissiontest.Once(apierrors.NewTimeoutError("no answer", 1))
	l.decisions.Write(t.Context(), translate.KeyOf(a))
	observe(w.Workload("a"))

	w.EditStatus(a, func() {
		workload.Evict(a, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "by another client"},
			admissiontest.Now)
	})
	w.Put(b)
	observe(w.Workload("a"), b)
	l.decisions.Write(t.Context(), translate.KeyOf(b))
	l.decisions.Write(t.Context(), translate.KeyOf(a))
	if !workload.HoldsQuota(w.Workload("b")) {
		t.Error("b holds no quota, want the quota that a released")
	}
	if workload.HoldsQuota(w.Workload("a")) {
		t.Error("both a and b hold the quota of 4 cpu")
	}
}

// TestQuotaReleasedMeanwhileIsNotGivenAgain: the response to an admission was lost, and the Workload released its quota
// before the engine observed either.
func TestQuotaReleasedMeanwhileIsNotGivenAgain(t *testing.T) {
	a := admissiontest.NewWorkload("a", 4, admissiontest.Quantities("cpu", "1"))
	objects := []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"), a}
	w := admissiontest.NewWorld(t, objects...)
	l := newLoop(manager{feed: &feed{world: w}}, config.Default(), clock.RealClock{})
	for _, o := range objects {
		l.mailbox.put(message{changed: o})
	}
	l.turn()
	w.After = admissiontest.Once(apierrors.NewTimeoutError("no answer", 1))
	l.decisions.Write(t.Context(), translate.KeyOf(a))
	if !workload.HoldsQuota(w.Workload("a")) {
		t.Fatal("the write whose response was lost took no effect")
	}
	w.EditStatus(a, func() {
		workload.Evict(a, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "by another client"},
			admissiontest.Now)
	})
	l.decisions.Write(t.Context(), translate.KeyOf(a))
	if workload.HoldsQuota(w.Workload("a")) {
		t.Error("the Workload was given quota that another one may hold by now")
	}
	l.turn() // applies that the decision was superseded, and decides again
	l.decisions.Write(t.Context(), translate.KeyOf(a))
	if !workload.HoldsQuota(w.Workload("a")) {
		t.Error("the Workload holds no quota although it is the only one")
	}
}
