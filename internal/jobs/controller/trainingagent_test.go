package controller_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// TestTrainingJobReturnsItsQuotaIfItsAgentIsNotServedAnyMore: the operator added agents when the job was queued and
// does not now, which is reported once.
func TestTrainingJobReturnsItsQuotaIfItsAgentIsNotServedAnyMore(t *testing.T) {
	withoutAgent := newTrainingJob()
	withoutAgent.Spec.ReplicaSpecs.Template.Spec.Containers[0].Command = []string{"train"}
	w := &trainingWorld{podWorld: newPodWorld(t, fault{}, of(trainingjob.API(trainingSettings)), withoutAgent,
		clusterQueue("cq"), flavor())}
	w.reconcile()
	job, queued := w.trainingJob(), w.workload()
	job.Spec.InjectLattice = true
	if err := w.api.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&queued.Spec.PodSets[0].Template.ObjectMeta, muster.AgentFrameworkAnnotation, "generic")
	if err := w.api.Update(t.Context(), queued); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.admit()
	for range 4 {
		w.reconcile()
	}
	if wl := w.workload(); workload.HoldsQuota(wl) || !workload.IsEvicted(wl) {
		t.Errorf("the Workload is not evicted, or keeps its quota: %+v", wl.Status.Conditions)
	}
	reported := 0
	for _, event := range w.events.events {
		if strings.Contains(event, "The agent that injectLattice asks for cannot be added") {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("reported %d times, want once: %q", reported, w.events.events)
	}
}

// TestAJobWaitsForTheCertificatesOfAgents: an operator that could not read them when it started reads them later, of
// which no event tells the job.
func TestAJobWaitsForTheCertificatesOfAgents(t *testing.T) {
	job := newTrainingJob()
	job.Spec.ReplicaSpecs.Template.Spec.Containers[0].Command, job.Spec.InjectLattice = []string{"train"}, true
	w := &trainingWorld{podWorld: newPodWorld(t, fault{}, of(trainingjob.API(trainingSettings)), job,
		clusterQueue("cq"), flavor())}
	agent := podspec.Agent{Image: "muster:1", Server: "muster:9444"}
	controller.SetAgent[*breezeml.TrainingJob](w.reconciler, func() podspec.Agent { return agent })
	again := w.reconcile().RequeueAfter
	if all := w.events.events; len(all) != 1 ||
		!strings.Contains(all[0], "cannot read the Secret with its certificates yet") {
		t.Errorf("events %q, want one that says for what the job waits", all)
	}
	if again <= 0 {
		t.Error("the job is not reconciled again")
	}
	agent.CA = "certificate"
	w.reconcile()
	if w.workload() == nil {
		t.Error("the job is not queued")
	}
}
