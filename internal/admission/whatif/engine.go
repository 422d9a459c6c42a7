package whatif

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
)

// endOfTime is later than the end of every grace period.
var endOfTime = time.Unix(1<<40, 0)

// NewEngine returns a what-if engine: at the time now it knows the objects as the operator's engine does under the same
// configuration, which must be complete. It has made no decisions: it is for queries, not for admitting. The objects
// must be of the kinds that the operator watches, in any order, and must not be changed afterwards.
func NewEngine(cfg *config.Configuration, now time.Time, objects ...client.Object) *engine.Engine {
	e := engine.New(translate.EngineOptions(cfg))
	for _, ev := range Events(cfg, objects...) {
		e.Apply(ev)
	}
	e.Arrange(now)
	noteEvictions(e, objects)
	engine.PlanStarts(e)
	return e
}

// Options returns the options of the operator's engine under the configuration.
func Options(cfg *config.Configuration) engine.Options { return translate.EngineOptions(cfg) }

// Events returns what the operator's engine is told of the objects under the configuration. The objects are those of
// NewEngine.
func Events(cfg *config.Configuration, objects ...client.Object) (events []engine.Event) {
	translator := translate.New(translate.CountingOf(cfg.Resources), translate.QueuePolicyOf(cfg),
		cfg.NodeFailure.NotReadyGrace.Duration)
	for _, object := range objects {
		// At endOfTime a node that is not ready counts as lost, though its grace period may not be over yet.
		events = append(events, translator.Changed(object, endOfTime)...)
	}
	return events
}

// noteEvictions tells the engine, from the status of each workload, for which other workload it was last evicted. The
// operator's engine remembers this from its own decisions.
func noteEvictions(e *engine.Engine, objects []client.Object) {
	keys := map[types.UID]engine.Key{}
	for _, object := range objects {
		if w, is := object.(*kueue.Workload); is {
			keys[w.UID] = translate.KeyOf(w)
		}
	}
	for _, object := range objects {
		if w, is := object.(*kueue.Workload); is {
			if preemptor, there := keys[translate.PreemptorOf(w)]; there {
				e.NoteEviction(translate.KeyOf(w), preemptor)
			}
		}
	}
}
