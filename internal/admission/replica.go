package admission

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/podspec"
)

// NewReplica gives an engine that knows the objects, of the kinds that the operator
// watches, as the operator's own does under the default configuration. It has decided
// nothing: it is for asking, not for admitting. The objects may be in any order and must
// not be changed afterwards.
func NewReplica(objects ...client.Object) *engine.Engine {
	words := newTranslator(podspec.Counting{}, queuePolicy{behindOnceEvicted: true})
	replica := engine.New(engine.Options{})
	for _, object := range objects {
		for _, ev := range words.changed(object) {
			replica.Apply(ev)
		}
	}
	replica.Arrange()
	return replica
}
