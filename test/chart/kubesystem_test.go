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

// nodesOnDemand returns values that set config.defaultQueue.nodesOnDemand.
func nodesOnDemand(mode any) values {
	return values{"config": values{"defaultQueue": values{"nodesOnDemand": mode}}}
}

// TestNothingIsCreatedInKubeSystemIfNodesOnDemandIsSet checks that only the detection of an autoscaler needs objects in
// kube-system, in which some clusters let no user write.
func TestNothingIsCreatedInKubeSystemIfNodesOnDemandIsSet(t *testing.T) {
	for mode, want := range map[string]int{"Detect": 2, "Always": 0, "Never": 0, "": 2} {
		with := nodesOnDemand(mode)
		if mode == "" { // a value left empty in a file
			with = nodesOnDemand(nil)
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
			t.Errorf("nodesOnDemand %q renders %d objects in kube-system, want %d", mode, found, want)
		}
	}
}

// TestOperatorNeedsNoRightInKubeSystemIfNodesOnDemandIsSet runs a job with an operator that has only the rights of the
// chart. The test fails if the API server refuses the operator a request.
func TestOperatorNeedsNoRightInKubeSystemIfNodesOnDemandIsSet(t *testing.T) {
	h, w := newHelm(t), harness.New(t)
	h.install(nodesOnDemand("Never"))
	cluster := testcluster.Get(t)
	operator.StartAs(t, "../../bin/muster-operator", cluster, account, flagsOfTheChart(t, cluster.Client)...).AwaitReady(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")})
	w.Create(w.Job("runs", "q", 1))
	w.UntilWorkloadOf("runs", "runs", harness.Runs)
}
