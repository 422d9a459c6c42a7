package decisions

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/podspec"
)

// decide makes an engine decide about the Workload in a queue of 8 cpu.
func decide(t *testing.T, w *kueue.Workload) engine.Decision {
	t.Helper()
	e, tr := engine.New(engine.Options{}), newTranslator()
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), w} {
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

// nodeScene has an engine, its translator and its decision writer over nodes of 4 cpu. A queue has far more quota, and
// its flavor is placed on the nodes.
type nodeScene struct {
	*admissiontest.World
	*translate.Translator
	*engine.Engine
	at time.Time
}

// newNodeScene returns a scene with the given objects.
func newNodeScene(t *testing.T, objects ...client.Object) *nodeScene {
	f := &nodeScene{Translator: newTranslator(), Engine: engine.New(engine.Options{}), at: admissiontest.Now}
	f.Pods.Filled = f.Filled
	objects = append([]client.Object{admissiontest.Namespace.DeepCopy(),
		admissiontest.Topology("t", "rack", corev1.LabelHostname), admissiontest.PlacedFlavor("f", "t"),
		admissiontest.NewClusterQueue("cq", "100"), admissiontest.NewLocalQueue("q", "cq")}, objects...)
	f.World = admissiontest.NewWorld(t, objects...)
	for _, o := range objects {
		f.observe(f.Changed(o, f.at)...)
	}
	return f
}

// readyNode returns a Node of 4 cpu that is ready.
func readyNode(name string) *corev1.Node {
	return admissiontest.Node(name, "cpu", "4", "memory", "8Gi", "pods", "10").Labeled("rack",
		"r").Ready(corev1.ConditionTrue, admissiontest.Now).Node
}

// observe applies the events to the engine.
func (n *nodeScene) observe(events ...engine.Event) {
	for _, ev := range events {
		n.Apply(ev)
	}
}

// on returns the nodes of the Workload's places.
func (n *nodeScene) on(name string) map[string]int32 {
	n.T.Helper()
	out := map[string]int32{}
	places, _ := translate.PlacesFrom(n.World.Workload(name).Status.Admission.PodSetAssignments[0].TopologyAssignment)
	for _, p := range places {
		out[p.Node] += p.Count
	}
	return out
}

// decide writes the engine's decisions and applies the outcome.
func (n *nodeScene) decide() (made []engine.Decision) {
	n.T.Helper()
	clock := clocktesting.NewFakePassiveClock(n.at)
	for _, d := range n.Decide(n.at) {
		made = append(made, d)
		if d.Admit == nil && d.Replace == nil && d.Resize == nil && d.Evict == nil {
			continue
		}
		writer := NewWriter(n.World, n.World, clock, NewWriteBudget(clock), func(ev engine.Event) { n.observe(ev) })
		writer.Take(d)
		writer.Write(n.T.Context(), d.Key)
		writer.Write(n.T.Context(), d.Key) // an apparently superseded decision is retried once against the API server
		n.observe(n.Changed(n.World.Workload(d.Key.Name), n.at)...)
	}
	return made
}

// newTranslator returns a translator that has observed nothing yet.
func newTranslator() *translate.Translator {
	return translate.New(podspec.Counting{}, translate.QueuePolicy{}, 5*time.Second)
}

// admissionOf returns what the engine learns that the Workload holds.
func admissionOf(w *kueue.Workload) *engine.Admission { return newTranslator().Workload(w).Admission }
