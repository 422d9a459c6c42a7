package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
)

// TestManyPodSetsAreExplainedOnAScreen: a LatticeJob with 40 tasks took 120 lines, most of them the same but for a
// name.
func TestManyPodSetsAreExplainedOnAScreen(t *testing.T) {
	e := &view.Explanation{Job: pendingJob(), WhyNot: &reason.Explanation{Together: &find.Diagnosis{}}}
	for i := range 20 {
		name := fmt.Sprintf("t%d", i)
		e.Asks = append(e.Asks, view.Ask{PodSet: name, Pods: 10,
			PerPod: corev1.ResourceList{"cpu": resource.MustParse("10m")}})
		flavor := reason.FlavorVerdict{Flavor: "default", Fit: reason.Fits,
			Amounts: []reason.Amount{amount("cpu", "2", "0"), amount("memory", "24684084Ki", "0")}}
		if i >= 12 {
			flavor.Fit, flavor.Amounts = reason.Short, []reason.Amount{amount("memory", "24684084Ki", fmt.Sprintf("%dKi", i))}
		}
		e.WhyNot.PodSets = append(e.WhyNot.PodSets, reason.PodSet{Name: name, Flavors: []reason.FlavorVerdict{flavor}})
		alone := find.AskDiagnosis{Shortfall: find.Shortfall{Topology: "dc", Together: true, Nodes: 32}}
		alone.PodSet = name
		e.WhyNot.Together.PodSets = append(e.WhyNot.Together.PodSets, alone)
	}
	var text strings.Builder
	if err := Explanation(&text, e); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(text.String(), "\n\n")
	want := `  asks      each of t0, t1, t2 and 17 more: 10 pods x 10m cpu
  queue     gpu: no LocalQueue of that name leads to a ClusterQueue in namespace ml
  pods      0/8 ready or done
  flavor    t0, t1, t2 and 9 more: default   enough quota: 2 of 2 cpu free, 23.5Gi of 23.5Gi memory free
            t12:                   default   24684084Ki of 24684084Ki memory free, 12Ki more needed
            t13:                   default   24684084Ki of 24684084Ki memory free, 13Ki more needed
            t14:                   default   24684084Ki of 24684084Ki memory free, 14Ki more needed
            t15:                   default   24684084Ki of 24684084Ki memory free, 15Ki more needed
            and others for 4 more pod sets
  together  t0, t1, t2 and 17 more: topology "dc" allows to fit each pod set alone, but not all together. Total nodes: 32
  next      muster queues -n ml
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// amount is one that is all free, and of which so much is missing.
func amount(name, capacity, missing string) reason.Amount {
	all := resource.MustParse(capacity)
	return reason.Amount{Resource: name, Free: all, Capacity: &all, Missing: resource.MustParse(missing)}
}
