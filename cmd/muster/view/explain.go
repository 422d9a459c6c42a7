package view

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Explanation is what `muster explain` says of one job: what it asks, where it stands in line, what its queue has, who
// holds the rest, and what its pods lack.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	Job             Job `json:"job"`
	// Asks has an entry for each pod set, in the order of the job.
	Asks []Ask `json:"asks,omitempty"`
	// Line is where the job stands in its queue; absent for a job without one.
	Line *Line `json:"line,omitempty"`
	// Quotas are those of the queue for what the job asks, of a job that waits.
	Quotas []Quota `json:"quotas,omitempty"`
	// Holders, of a job that waits, are the other jobs that hold quota of that queue, the largest first.
	Holders []Holder `json:"holders,omitempty"`
	// PodProblems says what keeps pods from being ready or made them fail, the most frequent first.
	PodProblems []PodProblem `json:"podProblems,omitempty"`
}

// Ask is what one pod set wants, and what it was given once admitted.
type Ask struct {
	PodSet  string                         `json:"podSet"`
	Pods    int32                          `json:"pods"`
	PerPod  corev1.ResourceList            `json:"perPod,omitempty"`
	Flavors map[corev1.ResourceName]string `json:"flavors,omitempty"`
}

// Line is a place in a queue. Position counts from 1; it is 0 for a job that no longer waits.
type Line struct {
	ClusterQueue string `json:"clusterQueue"`
	Position     int    `json:"position,omitempty"`
	Length       int    `json:"length"`
}

// Holder is a job that holds quota.
type Holder struct {
	Namespace string              `json:"namespace"`
	Job       string              `json:"job"`
	Priority  int32               `json:"priority"`
	Requests  corev1.ResourceList `json:"requests"`
}

// PodProblem is one complaint and the pods that share it.
type PodProblem struct {
	Pods    int    `json:"pods"`
	Example string `json:"example"` // the name of one of them
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// DeepCopyObject makes Explanation printable by the printers of kubectl, which only read: its parts are shared.
func (e *Explanation) DeepCopyObject() runtime.Object {
	copied := *e
	return &copied
}

// Explain says all that is known of one of the jobs that Jobs gave for the same seen and now.
func Explain(seen *Seen, jobs []Job, job Job, now time.Time) *Explanation {
	e := &Explanation{
		TypeMeta:    metav1.TypeMeta{APIVersion: OutputVersion, Kind: "Explanation"},
		Job:         job,
		PodProblems: podProblems(seen.Pods),
	}
	if workload := findWorkload(seen, &job); workload != nil {
		e.Asks = asksOf(workload)
	}
	e.Line = lineOf(seen, jobs, &job)
	if e.Line == nil || job.State != Pending {
		return e // who has what is of interest to those who wait
	}
	for _, queue := range Queues(seen, "", now) {
		if queue.Name == e.Line.ClusterQueue {
			e.Quotas = quotasFor(&queue, job.Requests)
			e.Holders = holdersOf(jobs, &job, queue.Name)
		}
	}
	return e
}

func findWorkload(seen *Seen, job *Job) *kueue.Workload {
	for i := range seen.Workloads {
		if w := &seen.Workloads[i]; w.Namespace == job.Namespace && w.Name == job.Workload {
			return w
		}
	}
	return nil
}

func asksOf(workload *kueue.Workload) []Ask {
	asks := make([]Ask, 0, len(workload.Spec.PodSets))
	for i := range workload.Spec.PodSets {
		podSet := &workload.Spec.PodSets[i]
		ask := Ask{PodSet: string(podSet.Name), Pods: podSet.Count, PerPod: podRequests(&podSet.Template)}
		if admission := workload.Status.Admission; admission != nil {
			for j := range admission.PodSetAssignments {
				if assignment := &admission.PodSetAssignments[j]; assignment.Name == podSet.Name {
					ask.Flavors = flavorNames(assignment.Flavors)
				}
			}
		}
		asks = append(asks, ask)
	}
	return asks
}

func flavorNames(flavors map[corev1.ResourceName]kueue.ResourceFlavorReference) map[corev1.ResourceName]string {
	names := make(map[corev1.ResourceName]string, len(flavors))
	for resource, flavor := range flavors {
		names[resource] = string(flavor)
	}
	return names
}

func lineOf(seen *Seen, jobs []Job, job *Job) *Line {
	clusterQueue := job.ClusterQueue
	for i := range seen.LocalQueues {
		if lq := &seen.LocalQueues[i]; clusterQueue == "" && lq.Namespace == job.Namespace && lq.Name == job.Queue {
			clusterQueue = string(lq.Spec.ClusterQueue)
		}
	}
	if clusterQueue == "" {
		return nil
	}
	waiting := waitingByQueue(seen, jobs)[clusterQueue]
	position := slices.IndexFunc(waiting, func(w waiter) bool { return w.job.UID == job.UID })
	return &Line{ClusterQueue: clusterQueue, Position: position + 1, Length: len(waiting)}
}

// quotasFor leaves out what the job does not ask for.
func quotasFor(queue *Queue, requests corev1.ResourceList) []Quota {
	var quotas []Quota
	for _, quota := range queue.Quotas {
		if asked, ok := requests[quota.Resource]; ok && !asked.IsZero() {
			quotas = append(quotas, quota)
		}
	}
	return quotas
}

// Free is what is left of a quota before borrowing, never less than 0.
func (q *Quota) Free() resource.Quantity {
	free := q.Nominal.DeepCopy()
	free.Sub(q.Reserved)
	if free.Sign() < 0 {
		return resource.Quantity{Format: free.Format}
	}
	return free
}

func holdersOf(jobs []Job, job *Job, clusterQueue string) []Holder {
	var holding []*Job
	for i := range jobs {
		other := &jobs[i]
		if other.UID != job.UID && other.ClusterQueue == clusterQueue && !other.State.Over() {
			holding = append(holding, other)
		}
	}
	scarce := corev1.ResourceCPU
	for _, name := range resourceOrder(job.Requests) {
		scarce = name
		break
	}
	slices.SortStableFunc(holding, func(a, b *Job) int {
		x, y := a.Requests[scarce], b.Requests[scarce]
		return y.Cmp(x)
	})
	holders := make([]Holder, 0, len(holding))
	for _, other := range holding {
		holders = append(holders, Holder{
			Namespace: other.Namespace, Job: other.Title(), Priority: other.Priority, Requests: other.Requests,
		})
	}
	return holders
}
