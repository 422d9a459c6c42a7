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

// NewReplica returns an engine that knows the objects as the operator's own engine does under that configuration,
// which must be complete, at the time now. It has made no decisions: it is for queries, not for admitting. The objects
// must be of the kinds that the operator watches, in any order, and must not be changed afterwards.
func NewReplica(cfg *config.Configuration, now time.Time, objects ...client.Object) *engine.Engine {
	translator := translate.New(translate.CountingOf(cfg.Resources), translate.QueuePolicyOf(cfg), cfg.NodeFailure.NotReadyGrace.Duration)
	replica := engine.New(translate.EngineOptions(cfg))
	for _, object := range objects {
		// At endOfTime a node that is not ready counts as lost, though its grace period may not be over yet.
		for _, ev := range translator.Changed(object, endOfTime) {
			replica.Apply(ev)
		}
	}
	replica.Arrange(now)
	noteEvictions(replica, objects) // a family that begins knows of none
	return replica
}

// noteEvictions tells the replica which workload was last evicted for which other one, as their status says. The operator's
// engine knows it of its own decisions.
func noteEvictions(replica *engine.Engine, objects []client.Object) {
	keys := map[types.UID]engine.Key{}
	for _, object := range objects {
		if w, is := object.(*kueue.Workload); is {
			keys[w.UID] = translate.KeyOf(w)
		}
	}
	for _, object := range objects {
		if w, is := object.(*kueue.Workload); is {
			if preemptor, there := keys[translate.PreemptorOf(w)]; there {
				replica.NoteEviction(translate.KeyOf(w), preemptor)
			}
		}
	}
}
