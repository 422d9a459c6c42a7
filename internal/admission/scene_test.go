package admission

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/podspec"
)

var (
	quantities = admissiontest.Quantities
	expect     = admissiontest.Expect
)

// decide makes an engine decide about the Workload in a queue of 8 cpu.
func decide(t *testing.T, w *kueue.Workload) engine.Decision {
	t.Helper()
	e, tr := engine.New(engine.Options{}), newSceneTranslator()
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"), admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), w} {
		for _, ev := range tr.Changed(o, admissiontest.Now) {
			e.Apply(ev)
		}
	}
	decisions := e.Decide(admissiontest.Now)
	if len(decisions) != 1 {
		t.Fatalf("got decisions %+v, want one", decisions)
	}
	return decisions[0]
}

// newSceneTranslator returns a translator that has observed nothing yet.
func newSceneTranslator() *translate.Translator {
	return translate.New(podspec.Counting{}, translate.QueuePolicy{}, 5*time.Second)
}
