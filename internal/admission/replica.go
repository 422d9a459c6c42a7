package admission

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/engine"
)

// NewReplica gives an engine that knows the objects, of the kinds that the operator
// watches, as the operator's own does under that configuration, a complete one. It has
// decided nothing: it is for asking, not for admitting. The objects may be in any order
// and must not be changed afterwards.
func NewReplica(cfg *config.Configuration, objects ...client.Object) *engine.Engine {
	words := newTranslator(countingOf(cfg.Resources), queuePolicyOf(cfg))
	replica := engine.New(engineOptions(cfg))
	for _, object := range objects {
		for _, ev := range words.changed(object) {
			replica.Apply(ev)
		}
	}
	replica.Arrange()
	return replica
}
