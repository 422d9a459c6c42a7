package admission

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
)

func TestAReplicaAnswersLikeTheOperator(t *testing.T) {
	a, b := newWorkload("a", 3, quantities("cpu", "1")), newWorkload("b", 2, quantities("cpu", "1"))
	admit(a, decide(t, a).Admit, nil, now)
	objects := []client.Object{b, a, newLocalQueue("q", "cq"), newClusterQueue("cq", "4"), newFlavor("f"), namespace.DeepCopy()}
	var first reason.Explanation
	for i := range 2 {
		x, ok := NewReplica(config.Default(), now, objects...).Explain(engine.Key{Namespace: "ns", Name: "b"})
		if !ok || x.Code != reason.WaitingForQuota || len(x.Holders) != 1 || x.Holders[0].Name.Name != "a" {
			t.Fatalf("explanation of b = %+v, want it to wait for the quota of a", x)
		}
		if i == 0 {
			first = x
		} else if diff := cmp.Diff(first, x); diff != "" {
			t.Errorf("the explanation depends on the order of the objects:\n%s", diff)
		}
		slices.Reverse(objects)
	}
	if x, _ := NewReplica(config.Default(), now, objects...).Explain(engine.Key{Namespace: "ns", Name: "a"}); x.State != reason.Admitted {
		t.Errorf("state of a = %s, want Admitted", x.State)
	}
}
