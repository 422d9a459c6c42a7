package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/whatif"
	"github.com/musterhq/muster/internal/engine/order"
)

// Queue is one ClusterQueue of `muster queues`.
type Queue struct {
	Name   string `json:"name"`
	Cohort string `json:"cohort,omitempty"`
	// Active reports whether the queue admits. If it does not, Reason and Message say why.
	Active  bool   `json:"active"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// Pending counts jobs that wait, Reserving the jobs that hold quota, and Admitted the jobs that hold quota and may
	// run.
	Pending   int32 `json:"pending"`
	Reserving int32 `json:"reserving"`
	Admitted  int32 `json:"admitted"`
	// Head is the job that is considered next; absent if there is none.
	Head *Head `json:"head,omitempty"`

	Quotas []Quota `json:"quotas"`
}

// Head is the first job that waits in a queue.
type Head struct {
	Namespace string `json:"namespace"`
	Job       string `json:"job"` // kind/name
	Workload  string `json:"workload"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// Quota is a queue's quota of one resource in one flavor. Used is held by admitted jobs; Reserved also includes jobs
// that wait for admission checks; Borrowed is the part of Reserved beyond Nominal, lent by the cohort.
type Quota struct {
	Flavor   string              `json:"flavor"`
	Resource corev1.ResourceName `json:"resource"`
	Used     resource.Quantity   `json:"used"`
	Reserved resource.Quantity   `json:"reserved"`
	Nominal  resource.Quantity   `json:"nominal"`
	Borrowed resource.Quantity   `json:"borrowed"`
	// Unlimited is set if Nominal limits nothing: nodes are provisioned on demand, or the queue has no limits.
	Unlimited bool `json:"unlimited,omitempty"`
}

// QueueList is the output of `muster queues -o json`.
type QueueList = List[Queue]

// NewQueueList returns a list of queues for printing.
func NewQueueList(queues []Queue) *QueueList { return newList("QueueList", queues) }

// Queues returns the ClusterQueues by name; with a namespace, only the ClusterQueues that its LocalQueues point to.
func Queues(snapshot *Snapshot, namespace string, now time.Time) []Queue {
	waiting, held := waitingByQueue(snapshot, Jobs(snapshot, now)), holdingsByQueue(snapshot)
	var queues []Queue
	for i := range snapshot.ClusterQueues {
		cq := &snapshot.ClusterQueues[i]
		if namespace != "" && !leadsFrom(snapshot, namespace, cq.Name) {
			continue
		}
		queues = append(queues, describeQueue(cq, waiting[cq.Name], held[cq.Name]))
	}
	slices.SortFunc(queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return queues
}

func leadsFrom(snapshot *Snapshot, namespace, clusterQueue string) bool {
	return slices.ContainsFunc(snapshot.LocalQueues, func(lq kueue.LocalQueue) bool {
		return lq.Namespace == namespace && string(lq.Spec.ClusterQueue) == clusterQueue
	})
}

func describeQueue(cq *kueue.ClusterQueue, waiting []waiter, held holdings) Queue {
	queue := Queue{
		Name: cq.Name, Cohort: string(cq.Spec.Cohort), Active: true,
		Pending: int32(len(waiting)), Reserving: held.reserving, Admitted: held.admitted,
		Quotas: []Quota{},
	}
	if active := meta.FindStatusCondition(cq.Status.Conditions, kueue.ClusterQueueActive); active != nil &&
		active.Status != metav1.ConditionTrue {
		queue.Active, queue.Reason, queue.Message = false, active.Reason, active.Message
	}
	if len(waiting) > 0 && waiting[0].fault != notConsidered {
		job := waiting[0].job
		queue.Head = &Head{
			Namespace: job.Namespace, Job: job.Title(), Workload: job.Workload,
			Reason: job.Reason, Message: job.Message,
		}
	}
	for i := range cq.Spec.ResourceGroups {
		for j := range cq.Spec.ResourceGroups[i].Flavors {
			flavor := &cq.Spec.ResourceGroups[i].Flavors[j]
			for k := range flavor.Resources {
				quota := held.quota(flavor.Name, &flavor.Resources[k])
				quota.Unlimited = cq.Annotations[muster.UnlimitedAnnotation] == "true"
				queue.Quotas = append(queue.Quotas, quota)
			}
		}
	}
	return queue
}

// waiter is a job that waits, with its sort keys.
type waiter struct {
	job  *Job
	rank order.Rank
	// standing is the recent usage of its LocalQueue, if the ClusterQueue orders by usage; it takes precedence over
	// rank.
	standing float64
	// fault is greater than 0 for a job that sorts last, whatever its rank; see faultRank.
	fault int
}

// waitingByQueue returns the pending jobs of each ClusterQueue in the order in which the engine considers them. Jobs
// that back off, are gated, wait in a stopped LocalQueue or are inadmissible come last: they block nobody.
func waitingByQueue(snapshot *Snapshot, jobs []Job) map[string][]waiter {
	byWorkload := make(map[[2]string]*Job, len(jobs))
	for i := range jobs {
		byWorkload[[2]string{jobs[i].Namespace, jobs[i].Workload}] = &jobs[i]
	}
	target, standing := map[[2]string]*kueue.LocalQueue{}, standings(snapshot)
	for i := range snapshot.LocalQueues {
		lq := &snapshot.LocalQueues[i]
		target[[2]string{lq.Namespace, lq.Name}] = lq
	}
	waiting := map[string][]waiter{}
	for i := range snapshot.Workloads {
		workload := &snapshot.Workloads[i]
		job := byWorkload[[2]string{workload.Namespace, workload.Name}]
		local := [2]string{workload.Namespace, string(workload.Spec.QueueName)}
		through := target[local]
		if job == nil || through == nil || job.State != Pending || job.Reason == reasonAdmissionChecks {
			continue
		}
		rank, considered := whatif.Rank(workload, snapshot.configuration())
		queue := string(through.Spec.ClusterQueue)
		waiting[queue] = append(waiting[queue],
			waiter{job: job, rank: rank, standing: standing[local], fault: faultRank(job, considered && isOpen(through))})
	}
	for _, line := range waiting {
		slices.SortFunc(line, func(a, b waiter) int {
			return cmp.Or(cmp.Compare(a.fault, b.fault), cmp.Compare(a.standing, b.standing), order.Compare(a.rank, b.rank))
		})
	}
	return waiting
}

// isOpen reports whether the LocalQueue itself lets workloads be admitted.
func isOpen(q *kueue.LocalQueue) bool {
	return q.DeletionTimestamp.IsZero() && ptr.Deref(q.Spec.StopPolicy, kueue.None) == kueue.None
}

// standings returns the standing of each LocalQueue, by namespace and name, whose ClusterQueue orders by usage.
func standings(snapshot *Snapshot) map[[2]string]float64 {
	out := map[[2]string]float64{}
	for i := range snapshot.LocalQueues {
		local := &snapshot.LocalQueues[i]
		at := slices.IndexFunc(snapshot.ClusterQueues, func(q kueue.ClusterQueue) bool {
			return q.Name == string(local.Spec.ClusterQueue) && q.Spec.AdmissionScope != nil
		})
		if at >= 0 {
			out[[2]string{local.Namespace, local.Name}] = whatif.RecentUsage(local, &snapshot.ClusterQueues[at],
				snapshot.configuration())
		}
	}
	return out
}

// notConsidered is the fault of jobs that the engine does not consider at present, and that are thus never the head.
const notConsidered = 2

// faultRank sorts inadmissible and misconfigured jobs behind other jobs, and jobs that back off or are held last.
func faultRank(job *Job, considered bool) int {
	switch {
	case !considered:
		return notConsidered
	case job.Reason == kueue.WorkloadInadmissible || job.Reason == kueue.WorkloadMisconfigured:
		return 1
	}
	return 0
}
