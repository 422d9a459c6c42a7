package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// onDemand are values that say whether nodes come when pods wait for them.
func onDemand(said string) values {
	return values{"config": values{"defaultQueue": values{"nodesOnDemand": said}}}
}

// TestNothingIsCreatedInKubeSystemIfNodesOnDemandIsSet: some clusters let nobody write there.
func TestNothingIsCreatedInKubeSystemIfNodesOnDemandIsSet(t *testing.T) {
	leftEmpty := values{"config": values{"defaultQueue": values{"nodesOnDemand": nil}}}
	for said, want := range map[string]int{"Detect": 2, "Always": 0, "Never": 0, "": 2} {
		with := onDemand(said)
		if said == "" {
			with = leftEmpty
		}
		text, err := render(t, tested, with)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range decode(t, text) {
			if o.GetNamespace() == "kube-system" {
				found++
			}
		}
		if found != want {
			t.Errorf("%s: %d objects are for kube-system, want %d", said, found, want)
		}
	}
}

// TestOperatorNeedsNoRightInKubeSystemIfNodesOnDemandIsSet: the operator's log would tell of one that it lacks.
func TestOperatorNeedsNoRightInKubeSystemIfNodesOnDemandIsSet(t *testing.T) {
	h, w := newHelm(t), harness.New(t)
	h.install(onDemand("Never"))
	cluster := testcluster.Get(t)
	operator.StartAs(t, "../../bin/muster-operator", cluster, account, flagsOfTheChart(t, cluster.Client)...).AwaitReady(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")})
	w.Create(w.Job("runs", "q", 1))
	w.UntilWorkloadOf("runs", "runs", harness.Runs)
}
