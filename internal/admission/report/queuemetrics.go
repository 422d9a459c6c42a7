package report

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/metrics"
)

// Metrics of queues, under the names that dashboards for Kueue use.
var (
	ofCluster = []string{"cohort", "cluster_queue", "flavor", "resource"}
	ofLocal   = []string{"name", "namespace", "flavor", "resource"}

	pendingWorkloads = metrics.NewGaugeDesc("kueue_pending_workloads",
		"Workloads that wait in the ClusterQueue: `inadmissible` are those whose status says Inadmissible or OnHold, for which waiting alone does nothing, `active` all others.",
		"cluster_queue", "status")
	reservingWorkloads = metrics.NewGaugeDesc("kueue_reserving_active_workloads",
		"Workloads that hold quota of the ClusterQueue.", "cluster_queue")
	admittedWorkloads = metrics.NewGaugeDesc("kueue_admitted_active_workloads",
		"Admitted Workloads of the ClusterQueue.", "cluster_queue")
	clusterQueueState = metrics.NewGaugeDesc("kueue_cluster_queue_status",
		"1 for what the ClusterQueue is, `active`, `pending` (it cannot admit) or `terminating`, 0 for the others.", "cluster_queue", "status")
	queueUsage = metrics.NewGaugeDesc("kueue_cluster_queue_resource_usage",
		"What admitted Workloads of the ClusterQueue use.", ofCluster...)
	queueReservation = metrics.NewGaugeDesc("kueue_cluster_queue_resource_reservation",
		"What Workloads hold of the ClusterQueue.", ofCluster...)
	queueNominal = metrics.NewGaugeDesc("kueue_cluster_queue_nominal_quota",
		"The ClusterQueue's own quota.", ofCluster...)
	queueBorrowingLimit = metrics.NewGaugeDesc("kueue_cluster_queue_borrowing_limit",
		"How much more than its own the ClusterQueue may use. Absent where there is no limit.", ofCluster...)
	queueLendingLimit = metrics.NewGaugeDesc("kueue_cluster_queue_lending_limit",
		"How much of its own the ClusterQueue lends at most. Absent where there is no limit.", ofCluster...)
	queueShare = metrics.NewGaugeDesc("kueue_cluster_queue_weighted_share",
		"The ClusterQueue's share beside its siblings, in thousandths by its weight. Absent without Fair Sharing.", "cluster_queue")
	cohortShare = metrics.NewGaugeDesc("kueue_cohort_weighted_share",
		"The cohort's share beside its siblings, in thousandths by its weight. Absent without Fair Sharing.", "cohort")

	localPending = metrics.NewGaugeDesc("kueue_local_queue_pending_workloads",
		"As `kueue_pending_workloads`, by LocalQueue.", "name", "namespace", "status")
	localReserving = metrics.NewGaugeDesc("kueue_local_queue_reserving_active_workloads",
		"Workloads of the LocalQueue that hold quota.", "name", "namespace")
	localAdmitted = metrics.NewGaugeDesc("kueue_local_queue_admitted_active_workloads",
		"Admitted Workloads of the LocalQueue.", "name", "namespace")
	localState = metrics.NewGaugeDesc("kueue_local_queue_status",
		"1 for the state of the LocalQueue's condition Active, `True` or `False`, 0 for the other.", "name", "namespace", "active")
	localUsage = metrics.NewGaugeDesc("kueue_local_queue_resource_usage",
		"What admitted Workloads of the LocalQueue use.", ofLocal...)
	localReservation = metrics.NewGaugeDesc("kueue_local_queue_resource_reservation",
		"What Workloads of the LocalQueue hold.", ofLocal...)

	auditDifference = metrics.NewGaugeDesc("muster_quota_audit_difference",
		"What the engine counts as held of the ClusterQueue beyond what its Workloads hold by the API, negative where it counts too little. Absent where both are equal.",
		"cluster_queue", "flavor", "resource")

	queueDescs = []*prometheus.Desc{pendingWorkloads, reservingWorkloads, admittedWorkloads, clusterQueueState, queueUsage,
		queueReservation, queueNominal, queueBorrowingLimit, queueLendingLimit, queueShare, cohortShare, localPending,
		localReserving, localAdmitted, localState, localUsage, localReservation, auditDifference}
)

// States of a ClusterQueue in its metric.
const (
	stateActive      = "active"
	statePending     = "pending"
	stateTerminating = "terminating"
)

// Served are the gauges of the queues of this process, which are filled while it leads.
var Served = newQueueGauges()

func init() { metrics.Serve(Served) }

// QueueGauges is a collector with the last known state of each queue. It computes the values when it is scraped, and
// drops the values of deleted queues.
type QueueGauges struct {
	mu sync.Mutex
	// usage and states are of ClusterQueues, LocalQueues and cohorts; specs are ClusterQueues as the cache has them.
	usage  map[StatusOf]engine.Usage
	states map[StatusOf]string
	specs  map[string]*kueue.ClusterQueue
	// clusterQueues is the ClusterQueue of each LocalQueue; inadmissible are the Workloads that are, by the
	// LocalQueue that they name.
	clusterQueues map[engine.Key]string
	inadmissible  map[engine.Key]map[engine.Key]bool
	// inadmissibleIn is the LocalQueue under which inadmissible has a Workload.
	inadmissibleIn map[engine.Key]engine.Key
	differences    map[AmountOf]int64
}

// AmountOf identifies an amount of a ClusterQueue.
type AmountOf struct {
	Queue string
	quota.FlavorResource
}

// newQueueGauges returns a collector that knows no queue yet.
func newQueueGauges() *QueueGauges {
	return &QueueGauges{
		usage: map[StatusOf]engine.Usage{}, states: map[StatusOf]string{}, specs: map[string]*kueue.ClusterQueue{},
		clusterQueues: map[engine.Key]string{}, inadmissible: map[engine.Key]map[engine.Key]bool{},
		inadmissibleIn: map[engine.Key]engine.Key{},
	}
}

// Note sets the usage of a queue or a cohort; spec is given for a ClusterQueue only.
func (q *QueueGauges) Note(key StatusOf, u engine.Usage, spec *kueue.ClusterQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.usage[key] = u
	if spec != nil {
		q.specs[key.Name] = spec
	}
}

// state sets the state of a queue, as its status has it. A queue that was deleted since that status was begun has none.
func (q *QueueGauges) state(key StatusOf, state string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, noted := q.usage[key]; noted {
		q.states[key] = state
	}
}

// SetDifferences sets the differences that the last audit found.
func (q *QueueGauges) SetDifferences(found map[AmountOf]int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.differences = found
}

// Forget drops a deleted queue, with all metrics that are labeled with it.
func (q *QueueGauges) Forget(key StatusOf) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.usage, key)
	delete(q.states, key)
	switch key.Kind {
	case OfClusterQueue:
		delete(q.specs, key.Name)
	case OfLocalQueue:
		delete(q.clusterQueues, key.Key)
	}
	forgetCounted(key)
}

// Apply notes which Workloads are inadmissible, by their status, and where LocalQueues point.
func (q *QueueGauges) Apply(event engine.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch ev := event.(type) {
	case engine.LocalQueueSet:
		q.clusterQueues[ev.Key] = ev.ClusterQueue
	case engine.WorkloadSet:
		vain := ev.Admission == nil && !ev.Inactive &&
			(ev.ReportedCode == reason.Inadmissible || ev.ReportedCode == reason.OnHold)
		q.setInadmissible(ev.Key, engine.Key{Namespace: ev.Key.Namespace, Name: ev.Queue}, vain)
	case engine.WorkloadGone:
		q.setInadmissible(ev.Key, engine.Key{}, false)
	}
}

func (q *QueueGauges) setInadmissible(key, queue engine.Key, vain bool) {
	if was, ok := q.inadmissibleIn[key]; ok && (!vain || was != queue) {
		delete(q.inadmissible[was], key)
		if len(q.inadmissible[was]) == 0 {
			delete(q.inadmissible, was)
		}
		delete(q.inadmissibleIn, key)
	}
	if vain {
		if q.inadmissible[queue] == nil {
			q.inadmissible[queue] = map[engine.Key]bool{}
		}
		q.inadmissible[queue][key], q.inadmissibleIn[key] = true, queue
	}
}

// Describe implements prometheus.Collector.
func (q *QueueGauges) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range queueDescs {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (q *QueueGauges) Collect(to chan<- prometheus.Metric) {
	q.mu.Lock()
	defer q.mu.Unlock()
	set := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	stuck := map[string]int{}
	for queue, those := range q.inadmissible {
		stuck[q.clusterQueues[queue]] += len(those)
	}
	for key, u := range q.usage {
		switch key.Kind {
		case OfClusterQueue:
			q.collectClusterQueue(set, key.Name, u, stuck[key.Name])
		case OfLocalQueue:
			collectLocalQueue(set, key.Key, u, len(q.inadmissible[key.Key]))
		case OfCohort:
			if u.Share != nil {
				set(cohortShare, float64(*u.Share), key.Name)
			}
		}
	}
	for key, state := range q.states {
		switch key.Kind {
		case OfClusterQueue:
			for _, s := range []string{statePending, stateActive, stateTerminating} {
				set(clusterQueueState, oneIf(s == state), key.Name, s)
			}
		case OfLocalQueue:
			for _, s := range []string{"True", "False"} {
				set(localState, oneIf(s == state), key.Name, key.Namespace, s)
			}
		}
	}
	for of, by := range q.differences {
		set(auditDifference, asFloat(of.FlavorResource, by), of.Queue, of.Flavor, of.Resource)
	}
}

type setter func(desc *prometheus.Desc, value float64, labels ...string)

func (q *QueueGauges) collectClusterQueue(set setter, name string, u engine.Usage, stuck int) {
	stuck = min(stuck, u.Pending)
	set(pendingWorkloads, float64(u.Pending-stuck), name, "active")
	set(pendingWorkloads, float64(stuck), name, "inadmissible")
	set(reservingWorkloads, float64(u.Reserving), name)
	set(admittedWorkloads, float64(u.Admitted), name)
	if u.Share != nil {
		set(queueShare, float64(*u.Share), name)
	}
	spec := q.specs[name]
	if spec == nil {
		return
	}
	cohort := string(spec.Spec.Cohort)
	for _, group := range spec.Spec.ResourceGroups {
		for _, f := range group.Flavors {
			for _, r := range f.Resources {
				of := quota.FlavorResource{Flavor: string(f.Name), Resource: string(r.Name)}
				labels := []string{cohort, name, of.Flavor, of.Resource}
				set(queueUsage, asFloat(of, u.Used[of]), labels...)
				set(queueReservation, asFloat(of, u.Reserved[of]), labels...)
				set(queueNominal, r.NominalQuota.AsApproximateFloat64(), labels...)
				for desc, limit := range map[*prometheus.Desc]*resource.Quantity{queueBorrowingLimit: r.BorrowingLimit,
					queueLendingLimit: r.LendingLimit} {
					if limit != nil {
						set(desc, limit.AsApproximateFloat64(), labels...)
					}
				}
			}
		}
	}
}

func collectLocalQueue(set setter, key engine.Key, u engine.Usage, stuck int) {
	stuck = min(stuck, u.Pending)
	set(localPending, float64(u.Pending-stuck), key.Name, key.Namespace, "active")
	set(localPending, float64(stuck), key.Name, key.Namespace, "inadmissible")
	set(localReserving, float64(u.Reserving), key.Name, key.Namespace)
	set(localAdmitted, float64(u.Admitted), key.Name, key.Namespace)
	for of, reserved := range u.Reserved {
		set(localReservation, asFloat(of, reserved), key.Name, key.Namespace, of.Flavor, of.Resource)
		set(localUsage, asFloat(of, u.Used[of]), key.Name, key.Namespace, of.Flavor, of.Resource)
	}
}

// asFloat converts an amount into the resource's base unit: cores, bytes, items.
func asFloat(of quota.FlavorResource, amount int64) float64 {
	q := quota.ToQuantity(corev1.ResourceName(of.Resource), amount)
	return q.AsApproximateFloat64()
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
