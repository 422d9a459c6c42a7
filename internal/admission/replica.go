package admission

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/engine"
)

// endOfTime is when every grace is over.
var endOfTime = time.Unix(1<<40, 0)

// NewReplica gives an engine that knows the objects, of the kinds that the operator
// watches, as the operator's own does under that configuration, a complete one. It has
// decided nothing: it is for asking, not for admitting. The objects may be in any order
// and must not be changed afterwards.
func NewReplica(cfg *config.Configuration, objects ...client.Object) *engine.Engine {
	words := newTranslator(countingOf(cfg.Resources), queuePolicyOf(cfg), cfg.NodeFailure.NotReadyGrace.Duration)
	replica := engine.New(engineOptions(cfg))
	for _, object := range objects {
		// A node that is not ready counts as lost here though its grace may not be over.
		for _, ev := range words.changed(object, endOfTime) {
			replica.Apply(ev)
		}
	}
	replica.Arrange()
	return replica
}
