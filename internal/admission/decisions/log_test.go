package decisions

import (
	"context"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// TestEachDecisionIsOneLineWithTheJobsKey: at the default level, each decision is logged in one line with the job's
// key.
func TestEachDecisionIsOneLineWithTheJobsKey(t *testing.T) {
	var lines []string
	ctx := ctrl.LoggerInto(context.Background(),
		funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 0}))
	waits := admissiontest.NewWorkload("w", 1, nil)
	waits.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u",
		Controller: ptr.To(true)}}
	runs := waits.DeepCopy()
	admit(runs, &engine.Admission{ClusterQueue: "cq", PodSets: []engine.Assignment{{PodSet: "main"}}}, nil,
		admissiontest.Now)
	moved := runs.DeepCopy()
	replace(moved, map[string]*kueue.TopologyAssignment{"main": {Levels: []string{"rack"}}})
	evicted := moved.DeepCopy()
	workload.Evict(evicted, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"},
		admissiontest.Now)
	reported := waits.DeepCopy()
	workload.SetCondition(reported, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "WaitingForQuota", "",
		admissiontest.Now)
	for _, pair := range [][2]*kueue.Workload{{waits, waits}, {waits, reported}, {waits, runs}, {runs, moved},
		{moved, evicted}} {
		LogChange(ctx, pair[0], pair[1])
	}
	line := func(decision, message string) string {
		return `"level"=0 "msg"="decided" "decision"="` + decision +
			`" "job"="Job/ns/train" "workload"="ns/w" "clusterQueue"="cq" "message"="` + message + `"`
	}
	want := []string{line("Admitted", "Admitted by ClusterQueue cq"),
		line("Replaced", "Pods were given other places than before"), line("Evicted", "Preempted: for another")}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log lines (-want +got):\n%s", diff)
	}
}
