package view

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
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
	// QueuesThere are the queues that the job could name, where there is none of the name that it names.
	QueuesThere []string `json:"queuesThere,omitempty"`
	// Checks, of a job that has its quota and waits for admission checks, are those that have not agreed.
	Checks []Check `json:"checks,omitempty"`
	// Covers are all resources of the queue, where a job waits that asks for another one.
	Covers []corev1.ResourceName `json:"covers,omitempty"`
	// Quotas are those of the queue for what the job asks, of a job that waits.
	Quotas []Quota `json:"quotas,omitempty"`
	// Unlimited says that the quota of the queue holds nobody back, who waits for other things.
	Unlimited bool `json:"unlimited,omitempty"`
	// Holders, of a job that waits, are the other jobs that hold quota of that queue, the largest first.
	Holders []Holder `json:"holders,omitempty"`
	// WhyNot, of a job that waits, is what the engine of the operator makes of its Workload; absent where too much of the
	// cluster is hidden from the reader. It names Workloads; Titles has the jobs that these stand for.
	WhyNot *reason.Explanation `json:"whyNot,omitempty"`
	Titles map[string]string   `json:"titles,omitempty"`
	// NewNodes says that the job was admitted without places, since no node that was there could ever have held its pods:
	// they wait for nodes that come on demand.
	NewNodes bool `json:"newNodes,omitempty"`
	// Unseen are the kinds of which the reader may not list all: what they would say is missing here.
	Unseen []string `json:"unseen,omitempty"`
	// Assumed says why the engine was asked under the default configuration, where it was because that of the operator is
	// not known.
	Assumed string `json:"assumed,omitempty"`
	// PodProblems says what keeps pods from being ready or made them fail, the most frequent first.
	PodProblems []PodProblem `json:"podProblems,omitempty"`
	// Warning is what was last told of a job that waits: mostly why it gets no Workload, or why it was evicted.
	Warning *Warning `json:"warning,omitempty"`
	// PodsGone says that there is not a single pod of a job that is over, any more: nothing is left that has logs.
	PodsGone bool `json:"-"`
}

// Warning is an event that warns, or an eviction.
type Warning struct {
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	ToldAt  metav1.Time `json:"toldAt"`
}

// Check is what an admission check says.
type Check struct {
	Name    string           `json:"name"`
	State   kueue.CheckState `json:"state"`
	Message string           `json:"message,omitempty"`
}

// Line is a place in a queue. Position counts from 1; it is 0 for a job that no longer waits.
type Line struct {
	ClusterQueue string `json:"clusterQueue"`
	Position     int    `json:"position,omitempty"`
	Length       int    `json:"length"`
	// Closed says that the queue admits nobody by its annotation alone, not by its stopPolicy.
	Closed bool `json:"-"`
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
		PodProblems: podProblems(seen.Pods, now),
		PodsGone:    job.State.Over() && len(seen.Pods) == 0,
	}
	workload := findWorkload(seen, &job)
	if workload != nil {
		e.Asks = asksOf(workload)
		e.NewNodes = job.PodsReady < job.PodsAsked && !job.State.Over() && waitsForNewNodes(seen, workload)
	}
	if seen.HeedsWarnings(&job) {
		e.Warning = lastWarning(seen.Warnings)
	}
	if workload != nil && job.State == Pending {
		e.Warning = lastEviction(workload)
	}
	e.Unseen = seen.Unseen
	hidden := seen.hidesDecisions() || seen.Configuration == nil
	if e.Line = lineOf(seen, jobs, &job); e.Line != nil && hidden {
		e.Line.Position, e.Line.Length = 0, 0 // those who stand in front may be out of sight
	}
	if e.Line == nil && job.Queue != "" && job.State == Pending {
		e.QueuesThere = queuesFor(seen, job.Namespace)
	}
	if workload != nil && job.Reason == reasonAdmissionChecks {
		e.Checks = checksOf(workload)
		return e // nobody has what it waits for
	}
	if hidden || job.State != Pending && (job.State != Suspended || job.ClusterQueue != "") {
		return e // who has what is of interest to those who wait
	}
	if workload != nil && workload.Status.Admission == nil {
		e.askEngine(seen, jobs, workload)
	}
	for _, queue := range Queues(seen, "", now) {
		if e.Line != nil && queue.Name == e.Line.ClusterQueue {
			e.Quotas = quotasFor(&queue, job.Requests)
			e.Unlimited = slices.ContainsFunc(queue.Quotas, func(q Quota) bool { return q.Unlimited })
			e.Holders = holdersOf(jobs, &job, queue.Name)
			if e.asksUncovered() {
				e.Covers = queue.covers()
			}
		}
	}
	return e
}

// HeedsWarnings reports whether what was last warned of may be what the job waits for: nothing queues for it, or it was let go and has
// not a single pod, of which seen has all.
func (s *Seen) HeedsWarnings(job *Job) bool {
	return job.WaitsUnseen() || job.State == Starting && job.PodsAsked > 0 && len(s.Pods) == 0
}

// lastWarning is the one that was told last, nil if there is none: earlier ones may have been heeded.
func lastWarning(events []corev1.Event) *Warning {
	var last *Warning
	for i := range events {
		if at := toldAt(&events[i]); last == nil || last.ToldAt.Before(&at) {
			last = &Warning{Reason: events[i].Reason, Message: events[i].Message, ToldAt: at}
		}
	}
	return last
}

// lastEviction is why a Workload that waits was evicted, nil if it was not since it was admitted last, or for others: these are named
// by what is short.
func lastEviction(w *kueue.Workload) *Warning {
	c := condition(w, kueue.WorkloadEvicted)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason == kueue.WorkloadEvictedByPreemption {
		return nil
	}
	return &Warning{Reason: c.Reason, Message: c.Message, ToldAt: c.LastTransitionTime}
}

// toldAt is when an event was told last, in whichever of its fields that stands.
func toldAt(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.CreationTimestamp
}

// askEngine has an engine that knows what the operator's knows say why the Workload waits.
func (e *Explanation) askEngine(seen *Seen, jobs []Job, workload *kueue.Workload) {
	replica := admission.NewReplica(seen.Configuration, seen.watched()...)
	whyNot, known := replica.Explain(engine.Key{Namespace: workload.Namespace, Name: workload.Name})
	if !known {
		return
	}
	if whyNot.Code == reason.PendingEvaluation {
		// By all that can be read it would be admitted next. What only the operator has heard of stands in its status alone.
		switch told := reason.Code(e.Job.Reason); {
		case told == reason.Inadmissible && reason.IsRefusedAdmission(e.Job.Message):
			whyNot.State, whyNot.Code, whyNot.Message = reason.Aside, told, e.Job.Message
		case told == reason.TopologyPlacementFailed && place.MentionsAvoided(e.Job.Message):
			whyNot.Code, whyNot.Message = told, e.Job.Message
		}
	}
	e.WhyNot, e.Assumed = &whyNot, seen.Assumed
	for i := range e.Asks {
		if at := slices.IndexFunc(whyNot.PodSets, func(ps reason.PodSet) bool { return ps.Name == e.Asks[i].PodSet }); at >= 0 {
			e.Asks[i].PerPod = whyNot.PodSets[at].PerPod // with what limit ranges and runtime classes add
			e.Asks[i].Fewest = whyNot.PodSets[at].Fewest
		}
	}
	if e.Line != nil {
		e.Line.Position, e.Line.Length = whyNot.Position, whyNot.Length
	}
	if e.Job.State == Pending && (whyNot.State != reason.Aside || e.Job.Reason != string(whyNot.Code)) {
		// The numbers of this moment, not those of when somebody last wrote them down.
		e.Job.Reason, e.Job.Message = string(whyNot.Code), whyNot.Message
	}
	titles := make(map[string]string, len(jobs))
	for i := range jobs {
		titles[jobs[i].Namespace+"/"+jobs[i].Workload] = jobs[i].FullTitle()
	}
	e.Titles = map[string]string{}
	for _, name := range whyNot.Names() {
		if title, ok := titles[name.String()]; ok {
			e.Titles[name.String()] = title
		}
	}
}

// Title is the job that a Workload of WhyNot stands for, or the Workload itself.
func (e *Explanation) Title(name reason.Name) string {
	if title, ok := e.Titles[name.String()]; ok {
		return title
	}
	return name.Namespace + "/workload/" + name.Name
}

// waitsForNewNodes reports whether the Workload holds quota of a queue whose nodes come on demand, in a flavor that is
// placed on nodes, and has no places there.
func waitsForNewNodes(seen *Seen, workload *kueue.Workload) bool {
	if workload.Status.Admission == nil || !onDemand(seen, string(workload.Status.Admission.ClusterQueue)) {
		return false
	}
	return slices.ContainsFunc(workload.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		return a.TopologyAssignment == nil && slices.ContainsFunc(seen.ResourceFlavors, func(f kueue.ResourceFlavor) bool {
			return f.Spec.TopologyName != nil && slices.Contains(slices.Collect(maps.Values(a.Flavors)), kueue.ResourceFlavorReference(f.Name))
		})
	})
}

func onDemand(seen *Seen, queue string) bool {
	return slices.ContainsFunc(seen.ClusterQueues, func(q kueue.ClusterQueue) bool {
		return q.Name == queue && q.Annotations[muster.NodesOnDemandAnnotation] == "true"
	})
}

func findWorkload(seen *Seen, job *Job) *kueue.Workload {
	for i := range seen.Workloads {
		if w := &seen.Workloads[i]; w.Namespace == job.Namespace && w.Name == job.Workload {
			return w
		}
	}
	return nil
}

// checksOf are the admission checks that have not agreed, by name.
func checksOf(w *kueue.Workload) (out []Check) {
	for i := range w.Status.AdmissionChecks {
		if c := &w.Status.AdmissionChecks[i]; c.State != kueue.CheckStateReady {
			out = append(out, Check{Name: string(c.Name), State: c.State, Message: c.Message})
		}
	}
	slices.SortFunc(out, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return out
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
	at := slices.IndexFunc(seen.ClusterQueues, func(cq kueue.ClusterQueue) bool { return cq.Name == clusterQueue })
	closed := at >= 0 && workload.Closed(&seen.ClusterQueues[at]) && ptr.Deref(seen.ClusterQueues[at].Spec.StopPolicy, kueue.None) == kueue.None
	return &Line{ClusterQueue: clusterQueue, Position: position + 1, Length: len(waiting), Closed: closed}
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

// asksUncovered reports whether the job asks for a resource that its queue has no quota for, as requests are counted: no flavor of the queue
// is asked then.
func (e *Explanation) asksUncovered() bool {
	return e.WhyNot != nil && e.WhyNot.Code == reason.NoMatchingFlavor &&
		!slices.ContainsFunc(e.WhyNot.PodSets, func(ps reason.PodSet) bool { return len(ps.Flavors) > 0 })
}

// covers are all resources that the queue has quota for.
func (q *Queue) covers() []corev1.ResourceName {
	covered := map[corev1.ResourceName]bool{}
	for _, quota := range q.Quotas {
		covered[quota.Resource] = true
	}
	return slices.Sorted(maps.Keys(covered))
}

// queuesFor are the names of the queues that jobs of the namespace may name: the LocalQueues there, and the ClusterQueues that take
// them, as far as the reader may see that.
func queuesFor(seen *Seen, namespace string) []string {
	var names []string
	for i := range seen.LocalQueues {
		if seen.LocalQueues[i].Namespace == namespace {
			names = append(names, seen.LocalQueues[i].Name)
		}
	}
	at := slices.IndexFunc(seen.Namespaces, func(ns corev1.Namespace) bool { return ns.Name == namespace })
	for i := range seen.ClusterQueues {
		if at >= 0 && workload.Takes(&seen.ClusterQueues[i], &seen.Namespaces[at]) {
			names = append(names, seen.ClusterQueues[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
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
