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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission"
	"github.com/musterhq/muster/internal/engine/order"
)

// Queue is one ClusterQueue of `muster queues`.
type Queue struct {
	Name   string `json:"name"`
	Cohort string `json:"cohort,omitempty"`
	// Active tells whether the queue admits. If it does not, Reason and Message say why.
	Active  bool   `json:"active"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// Pending jobs wait, Reserving ones hold quota, Admitted ones among those may run.
	Pending   int32 `json:"pending"`
	Reserving int32 `json:"reserving"`
	Admitted  int32 `json:"admitted"`
	// Head is the job that is considered next, absent when none is.
	Head *Head `json:"head,omitempty"`

	Quotas []Quota `json:"quotas"`
}

// Head is the first of the jobs that wait in a queue.
type Head struct {
	Namespace string `json:"namespace"`
	Job       string `json:"job"` // kind/name
	Workload  string `json:"workload"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// Quota is what a queue has of one resource in one flavor. Used is what admitted jobs hold, Reserved adds jobs that
// still wait for admission checks, Borrowed is the part beyond Nominal that the cohort lends.
type Quota struct {
	Flavor   string              `json:"flavor"`
	Resource corev1.ResourceName `json:"resource"`
	Used     resource.Quantity   `json:"used"`
	Reserved resource.Quantity   `json:"reserved"`
	Nominal  resource.Quantity   `json:"nominal"`
	Borrowed resource.Quantity   `json:"borrowed"`
	// Unlimited: Nominal holds nobody back, nodes come on demand or the queue is without limits.
	Unlimited bool `json:"unlimited,omitempty"`
}

// QueueList is what `muster queues -o json` prints.
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	Items           []Queue `json:"items"`
}

// NewQueueList wraps queues for printing.
func NewQueueList(queues []Queue) *QueueList {
	if queues == nil {
		queues = []Queue{}
	}
	return &QueueList{TypeMeta: metav1.TypeMeta{APIVersion: OutputVersion, Kind: "QueueList"}, Items: queues}
}

// DeepCopyObject makes QueueList printable by the printers of kubectl, which only read: the items are shared.
func (l *QueueList) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}

// Queues lists the ClusterQueues by name. With a namespace, only those that a LocalQueue of it leads to.
func Queues(seen *Seen, namespace string, now time.Time) []Queue {
	waiting, held := waitingByQueue(seen, Jobs(seen, now)), holdingsByQueue(seen)
	var queues []Queue
	for i := range seen.ClusterQueues {
		cq := &seen.ClusterQueues[i]
		if namespace != "" && !leadsFrom(seen, namespace, cq.Name) {
			continue
		}
		queues = append(queues, describeQueue(cq, waiting[cq.Name], held[cq.Name]))
	}
	slices.SortFunc(queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return queues
}

func leadsFrom(seen *Seen, namespace, clusterQueue string) bool {
	return slices.ContainsFunc(seen.LocalQueues, func(lq kueue.LocalQueue) bool {
		return lq.Namespace == namespace && string(lq.Spec.ClusterQueue) == clusterQueue
	})
}

func describeQueue(cq *kueue.ClusterQueue, waiting []waiter, held holdings) Queue {
	queue := Queue{
		Name: cq.Name, Cohort: string(cq.Spec.Cohort), Active: true,
		Pending: int32(len(waiting)), Reserving: held.reserving, Admitted: held.admitted,
		Quotas: []Quota{},
	}
	if active := meta.FindStatusCondition(cq.Status.Conditions, kueue.ClusterQueueActive); active != nil && active.Status != metav1.ConditionTrue {
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

// waiter is a job that waits, with its place in the engine's order.
type waiter struct {
	job  *Job
	rank order.Rank
	// standing is what its LocalQueue has used of late, where that goes before ranks.
	standing float64
	// fault is greater where it is not considered whatever its rank.
	fault int
}

// waitingByQueue lists the pending jobs of each ClusterQueue in the order in which the engine considers them. Those who back off, are gated,
// wait in a LocalQueue that is stopped, or are kept out by their own fault come last, for they hold nobody up.
func waitingByQueue(seen *Seen, jobs []Job) map[string][]waiter {
	byWorkload := make(map[[2]string]*Job, len(jobs))
	for i := range jobs {
		byWorkload[[2]string{jobs[i].Namespace, jobs[i].Workload}] = &jobs[i]
	}
	target, standing := map[[2]string]*kueue.LocalQueue{}, standings(seen)
	for i := range seen.LocalQueues {
		lq := &seen.LocalQueues[i]
		target[[2]string{lq.Namespace, lq.Name}] = lq
	}
	waiting := map[string][]waiter{}
	for i := range seen.Workloads {
		workload := &seen.Workloads[i]
		job := byWorkload[[2]string{workload.Namespace, workload.Name}]
		local := [2]string{workload.Namespace, string(workload.Spec.QueueName)}
		through := target[local]
		if job == nil || through == nil || job.State != Pending || job.Reason == reasonAdmissionChecks {
			continue
		}
		rank, considered := admission.Rank(workload, seen.configuration())
		queue := string(through.Spec.ClusterQueue)
		waiting[queue] = append(waiting[queue], waiter{job: job, rank: rank, standing: standing[local], fault: faultRank(job, considered && isOpen(through))})
	}
	for _, line := range waiting {
		slices.SortFunc(line, func(a, b waiter) int {
			return cmp.Or(cmp.Compare(a.fault, b.fault), cmp.Compare(a.standing, b.standing), order.Compare(a.rank, b.rank))
		})
	}
	return waiting
}

// isOpen reports whether workloads that name the LocalQueue are admitted, as far as that depends on it.
func isOpen(q *kueue.LocalQueue) bool {
	return q.DeletionTimestamp.IsZero() && ptr.Deref(q.Spec.StopPolicy, kueue.None) == kueue.None
}

// standings are those of the LocalQueues, by namespace and name, that are not 0.
func standings(seen *Seen) map[[2]string]float64 {
	out := map[[2]string]float64{}
	for i := range seen.LocalQueues {
		local := &seen.LocalQueues[i]
		at := slices.IndexFunc(seen.ClusterQueues, func(q kueue.ClusterQueue) bool {
			return q.Name == string(local.Spec.ClusterQueue) && q.Spec.AdmissionScope != nil
		})
		if at >= 0 {
			out[[2]string{local.Namespace, local.Name}] = admission.Standing(local, &seen.ClusterQueues[at], seen.configuration())
		}
	}
	return out
}

// notConsidered is the fault of those who are out of the line for the time being, and so never first in it.
const notConsidered = 2

// faultRank puts last who is kept out by his own fault, and behind him who backs off or is held back.
func faultRank(job *Job, considered bool) int {
	switch {
	case !considered:
		return notConsidered
	case job.Reason == kueue.WorkloadInadmissible || job.Reason == kueue.WorkloadMisconfigured:
		return 1
	}
	return 0
}
