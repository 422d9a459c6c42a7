package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/metrics/metricstest"
)

func TestQueueMetrics(t *testing.T) {
	g := newQueueGauges()
	spec := admissiontest.NewClusterQueue("cq", "8")
	spec.Spec.Cohort = "lab"
	spec.Spec.ResourceGroups[0].Flavors[0].Resources[0].BorrowingLimit = ptr.To(resource.MustParse("1500m"))
	cpu := quota.FlavorResource{Flavor: "f", Resource: "cpu"}
	usage := engine.Usage{Pending: 3, Reserving: 2, Admitted: 1, Share: ptr.To[int64](250),
		Reserved: map[quota.FlavorResource]int64{cpu: 4500}, Used: map[quota.FlavorResource]int64{cpu: 2000}}
	cluster, local, cohort := StatusOf{OfClusterQueue, engine.Key{Name: "cq"}},
		StatusOf{OfLocalQueue, engine.Key{Namespace: "ns", Name: "q"}}, StatusOf{OfCohort, engine.Key{Name: "lab"}}
	g.Note(cluster, usage, spec)
	g.Note(local, usage, nil)
	g.Note(cohort, engine.Usage{Share: ptr.To[int64](100)}, nil)
	g.state(cluster, stateActive)
	g.state(local, "False")
	g.Apply(engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: local.Key, ClusterQueue: "cq"}})
	waits := engine.Workload{Key: engine.Key{Namespace: "ns", Name: "w"}, Queue: "q", ReportedCode: reason.Inadmissible}
	g.Apply(engine.WorkloadSet{Workload: waits})
	g.SetDifferences(map[AmountOf]int64{{"cq", cpu}: -500})
	want := map[string]float64{
		"kueue_pending_workloads{cluster_queue=cq,status=active}":                                     2,
		"kueue_pending_workloads{cluster_queue=cq,status=inadmissible}":                               1,
		"kueue_reserving_active_workloads{cluster_queue=cq}":                                          2,
		"kueue_admitted_active_workloads{cluster_queue=cq}":                                           1,
		"kueue_cluster_queue_status{cluster_queue=cq,status=active}":                                  1,
		"kueue_cluster_queue_status{cluster_queue=cq,status=pending}":                                 0,
		"kueue_cluster_queue_status{cluster_queue=cq,status=terminating}":                             0,
		"kueue_cluster_queue_resource_usage{cluster_queue=cq,cohort=lab,flavor=f,resource=cpu}":       2,
		"kueue_cluster_queue_resource_reservation{cluster_queue=cq,cohort=lab,flavor=f,resource=cpu}": 4.5,
		"kueue_cluster_queue_nominal_quota{cluster_queue=cq,cohort=lab,flavor=f,resource=cpu}":        8,
		"kueue_cluster_queue_borrowing_limit{cluster_queue=cq,cohort=lab,flavor=f,resource=cpu}":      1.5,
		"kueue_cluster_queue_weighted_share{cluster_queue=cq}":                                        250,
		"kueue_cohort_weighted_share{cohort=lab}":                                                     100,
		"kueue_local_queue_pending_workloads{name=q,namespace=ns,status=active}":                      2,
		"kueue_local_queue_pending_workloads{name=q,namespace=ns,status=inadmissible}":                1,
		"kueue_local_queue_reserving_active_workloads{name=q,namespace=ns}":                           2,
		"kueue_local_queue_admitted_active_workloads{name=q,namespace=ns}":                            1,
		"kueue_local_queue_status{active=True,name=q,namespace=ns}":                                   0,
		"kueue_local_queue_status{active=False,name=q,namespace=ns}":                                  1,
		"kueue_local_queue_resource_usage{flavor=f,name=q,namespace=ns,resource=cpu}":                 2,
		"kueue_local_queue_resource_reservation{flavor=f,name=q,namespace=ns,resource=cpu}":           4.5,
		"muster_quota_audit_difference{cluster_queue=cq,flavor=f,resource=cpu}":                       -0.5,
	}
	if diff := cmp.Diff(want, metricstest.Of(t, g)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	waits.ReportedCode = reason.WaitingForQuota
	g.Apply(engine.WorkloadSet{Workload: waits})
	if got := metricstest.Of(t, g)["kueue_pending_workloads{cluster_queue=cq,status=inadmissible}"]; got != 0 {
		t.Errorf("inadmissible workloads = %v, want 0", got)
	}
	g.SetDifferences(nil)
	for _, key := range []StatusOf{cluster, local, cohort} {
		g.Forget(key)
	}
	g.state(cluster, stateTerminating) // by a status write that began before the deletion
	if left := metricstest.Of(t, g); len(left) != 0 {
		t.Errorf("metrics of deleted queues = %v, want none", left)
	}
}

// TestInadmissibleWorkloadsAreForgotten: the sets must not grow with every Workload that has ever waited.
func TestInadmissibleWorkloadsAreForgotten(t *testing.T) {
	g := newQueueGauges()
	w := engine.Workload{Key: engine.Key{Namespace: "ns", Name: "w"}, Queue: "q", ReportedCode: reason.OnHold}
	for _, events := range [][]engine.Event{
		{engine.WorkloadSet{Workload: w}, engine.WorkloadGone{Key: w.Key}},
		{engine.WorkloadSet{Workload: w},
			engine.WorkloadSet{Workload: engine.Workload{Key: w.Key, Queue: "q", ReportedCode: reason.OnHold, Inactive: true}}},
		{engine.WorkloadSet{Workload: w},
			engine.WorkloadSet{Workload: engine.Workload{Key: w.Key, Queue: "q", ReportedCode: reason.OnHold,
				Admission: &engine.Admission{}}}},
		{engine.WorkloadSet{Workload: w},
			engine.WorkloadSet{Workload: engine.Workload{Key: w.Key, Queue: "r", ReportedCode: reason.OnHold}},
			engine.WorkloadGone{Key: w.Key}},
	} {
		for _, ev := range events {
			g.Apply(ev)
		}
		if len(g.inadmissible) != 0 || len(g.inadmissibleIn) != 0 {
			t.Errorf("after %+v: inadmissible = %v and %v, want none", events, g.inadmissible, g.inadmissibleIn)
		}
	}
}
