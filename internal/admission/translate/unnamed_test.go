package translate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestResourcesThatAVolcanoQueueDoesNotNameAreMarked: in the ClusterQueue that a Volcano Queue controls, a resource
// without nominal quota is one that the Queue does not name, and does not count as borrowed.
func TestResourcesThatAVolcanoQueueDoesNotNameAreMarked(t *testing.T) {
	owner := func(apiVersion, kind string, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "team", UID: "uid",
			Controller: ptr.To(controls)}}
	}
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		marked bool
	}{
		"a Volcano Queue controls it":         {owner("scheduling.volcano.sh/v1beta1", "Queue", true), true},
		"a Volcano Queue only refers to it":   {owner("scheduling.volcano.sh/v1beta1", "Queue", false), false},
		"an object of another API has it":     {owner("example.com/v1beta1", "Queue", true), false},
		"another kind of the same API has it": {owner("scheduling.volcano.sh/v1beta1", "PodGroup", true), false},
		"an administrator made it":            {nil, false},
	} {
		cpu, pods := quota.FlavorResource{Flavor: "default", Resource: "cpu"},
			quota.FlavorResource{Flavor: "default", Resource: "pods"}
		quotas := quota.Quotas{cpu: {Nominal: 2000}, pods: {}}
		markUnnamed(quotas, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team", OwnerReferences: c.owners}})
		if quotas[cpu].Unnamed || quotas[pods].Unnamed != c.marked || quotas[cpu].Nominal != 2000 {
			t.Errorf("%s: cpu %+v, pods %+v; want pods marked: %v, and cpu as it was", name, quotas[cpu], quotas[pods], c.marked)
		}
	}
}
