package view

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/whatif"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

// Explanation is the result of `muster explain` for one job: its requests, its position in the queue, the queue's
// quotas, who holds the rest, and what its pods lack.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	Job             Job `json:"job"`
	// Asks has an entry for each pod set, in their order in the job.
	Asks []Ask `json:"asks,omitempty"`
	// Line is the job's position in its queue; absent for a job without a queue.
	Line *Line `json:"line,omitempty"`
	// QueuesThere are the queues that the job could name, if the one that it names does not exist.
	QueuesThere []string `json:"queuesThere,omitempty"`
	// Checks are the admission checks that are not Ready, for a job that has reserved quota and waits for them, with what
	// keeps a check from ever becoming ready. For a job that waits for quota, they are the checks that keep its
	// ClusterQueue inactive.
	Checks []Check `json:"checks,omitempty"`
	// Accepts is the namespaceSelector of the ClusterQueue, if it refuses the namespace of the waiting job.
	Accepts *metav1.LabelSelector `json:"accepts,omitempty"`
	// Covers are the resources that the queue has quota for, if the waiting job requests one that it does not cover.
	Covers []corev1.ResourceName `json:"covers,omitempty"`
	// Quotas are, for a job that waits, the queue's quotas of the resources that the job requests.
	Quotas []Quota `json:"quotas,omitempty"`
	// Unlimited is set if the quota of the queue is unlimited, so that the job waits for something else.
	Unlimited bool `json:"unlimited,omitempty"`
	// Holders are, for a job that waits, the jobs that hold quota of its queue, the largest first.
	Holders []Holder `json:"holders,omitempty"`
	// WhyNot is, for a job that waits, the explanation of an engine like the operator's; absent if the reader may not
	// read enough of the cluster. It and Replacing name Workloads; Titles maps their names to the titles of their jobs.
	WhyNot *reason.Explanation `json:"whyNot,omitempty"`
	Titles map[string]string   `json:"titles,omitempty"`
	// NewNodes is set if the job was admitted without places, because no node of that time could ever hold its pods, and
	// not all of these have a node yet: they wait for nodes that are provisioned on demand.
	NewNodes bool `json:"newNodes,omitempty"`
	// Replacing is set if the running job lost places of some pods and waits for others.
	Replacing *reason.Replacing `json:"replacing,omitempty"`
	// Unseen are the kinds that the reader may not list completely: the explanation lacks what they would add.
	Unseen []string `json:"unseen,omitempty"`
	// Assumed says why the engine used the default configuration, if the operator's is not known.
	Assumed string `json:"assumed,omitempty"`
	// PodProblems are the reasons why pods are not ready or failed, the most frequent first.
	PodProblems []PodProblem `json:"podProblems,omitempty"`
	// Warning is the last warning about a job that waits: usually why it has no Workload, or why it was evicted. For one
	// that lacks pods: why they could not be created.
	Warning *Warning `json:"warning,omitempty"`
	// NoLogs is set for a finished job without any pods left, for one whose pods are simulated, and for one none of whose
	// pods has started a container.
	NoLogs bool `json:"-"`
}

// Warning is a Warning event or an eviction.
type Warning struct {
	Reason     string      `json:"reason"`
	Message    string      `json:"message"`
	ReportedAt metav1.Time `json:"toldAt"`
}

// Line is a position in a queue. Position counts from 1; it and Length are 0 for a job that no longer waits.
type Line struct {
	ClusterQueue string `json:"clusterQueue"`
	Position     int    `json:"position,omitempty"`
	Length       int    `json:"length"`
	// Closed is set if the queue is held by its annotation alone and not by its stopPolicy.
	Closed bool `json:"-"`
	// Missing is set if the reader can see no ClusterQueue of this name.
	Missing bool `json:"-"`
}

// Holder is a job that holds quota.
type Holder struct {
	Namespace string              `json:"namespace"`
	Job       string              `json:"job"`
	Priority  int32               `json:"priority"`
	Requests  corev1.ResourceList `json:"requests"`
}

// DeepCopyObject makes Explanation a runtime.Object for kubectl's printers. The copy is shallow: printers only read.
func (e *Explanation) DeepCopyObject() runtime.Object {
	copied := *e
	return &copied
}

// Explain explains one of the jobs that Jobs returned for the same snapshot and now.
func Explain(snapshot *Snapshot, jobs []Job, job Job, now time.Time) *Explanation {
	e := &Explanation{
		TypeMeta:    metav1.TypeMeta{APIVersion: OutputVersion, Kind: "Explanation"},
		Job:         job,
		Unseen:      snapshot.Unseen,
		PodProblems: podProblems(snapshot.Pods, snapshot.Claims, snapshot.Mounts, job.lacksPods(), snapshot.lacksNode, now),
		NoLogs: job.State.HasOutcome() && len(snapshot.Pods) == 0 || snapshot.simulatesPods() ||
			snapshot.startedNothing(),
	}
	workload := findWorkload(snapshot, &job)
	if workload != nil {
		e.Asks = asksOf(workload)
		for i := range e.Asks {
			if job.State.HasOutcome() {
				// a job that has ended has given all back, which says nothing of its admission
				e.Asks[i].Given, e.Asks[i].Left = nil, nil
			}
		}
		e.NewNodes = job.PodsReady < job.PodsAsked && !job.State.HasOutcome() && waitsForNewNodes(snapshot, workload)
	}
	e.Warning = warningAbout(snapshot, &job, workload)
	if job.Message == noWorkloadYet && e.Warning == nil {
		e.Job.Message = "no Workload yet, and no event that you may read says why: check that Muster's operator runs"
	}
	hidden := snapshot.hidesDecisions() || snapshot.Configuration == nil
	if e.Line = lineOf(snapshot, jobs, &job); e.Line != nil && hidden {
		e.Line.Position, e.Line.Length = 0, 0 // the reader may not see all jobs that come first
	}
	if e.Line == nil && job.Queue != "" && job.State == Pending {
		e.QueuesThere = queuesFor(snapshot, job.Namespace)
	}
	switch waits := job.State == Pending || job.State == Suspended && job.ClusterQueue == ""; {
	case workload != nil && job.Reason == reasonAdmissionChecks:
		e.Checks = checksOf(snapshot, workload) // it has its quota: holders do not matter
	case waits && !hidden:
		e.explainWait(snapshot, jobs, workload, now)
	case workload != nil && hasPlaces(workload) && !job.State.HasOutcome() && job.PodsReady < job.PodsAsked && !hidden:
		e.explainLoss(snapshot, jobs, workload, now)
	}
	return e
}

// explainWait explains why the job waits for quota, and who holds it. The Workload is nil if the job has none.
func (e *Explanation) explainWait(snapshot *Snapshot, jobs []Job, workload *kueue.Workload, now time.Time) {
	if workload != nil && workload.Status.Admission == nil {
		e.askEngine(snapshot, jobs, workload, now)
	}
	if e.Line == nil {
		return
	}
	e.Checks = inactiveChecks(snapshot, e.Line.ClusterQueue)
	e.Accepts = refusingSelector(snapshot, e.Line.ClusterQueue, e.Job.Namespace)
	for _, queue := range Queues(snapshot, "", now) {
		if queue.Name == e.Line.ClusterQueue {
			e.Quotas = quotasFor(&queue, e.Job.Requests)
			e.Unlimited = slices.ContainsFunc(queue.Quotas, func(q Quota) bool { return q.Unlimited })
			e.Holders = holdersOf(jobs, &e.Job, queue.Name)
			if e.asksUncovered() {
				e.Covers = queue.covers()
			}
		}
	}
}

// hasPlaces reports whether the Workload was admitted to places on nodes, which it may lose.
func hasPlaces(workload *kueue.Workload) bool {
	return workload.Status.Admission != nil &&
		slices.ContainsFunc(workload.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
			return a.TopologyAssignment != nil
		})
}

// explainLoss explains why a running job that lost places has no others yet. It builds an engine with the
// whole state, as the explanation of a waiting job does: only the engine knows which places are lost, by nodes that are
// gone, changed labels or used capacity. A job without places has none to lose, and costs nothing.
func (e *Explanation) explainLoss(snapshot *Snapshot, jobs []Job, workload *kueue.Workload, now time.Time) {
	explanation, known := whatif.NewEngine(snapshot.Configuration, now,
		snapshot.watched()...).Explain(engine.Key{Namespace: workload.Namespace, Name: workload.Name})
	if known && explanation.Replacing != nil {
		e.Replacing = explanation.Replacing
		e.name(jobs, &explanation)
	}
}

// askEngine builds an engine with the same state as the operator's at that time, and has it explain why the Workload
// waits.
func (e *Explanation) askEngine(snapshot *Snapshot, jobs []Job, workload *kueue.Workload, now time.Time) {
	asked := whatif.NewEngine(snapshot.Configuration, now, snapshot.watched()...)
	whyNot, known := asked.Explain(engine.Key{Namespace: workload.Namespace, Name: workload.Name})
	if !known {
		return
	}
	if whyNot.Code == reason.PendingEvaluation || reason.IsRefusedAdmission(whyNot.Message) {
		// By all that can be read it would be admitted next. What only the operator knows is in the Workload's status.
		switch code := reason.Code(e.Job.Reason); {
		case code == reason.Inadmissible && reason.IsRefusedAdmission(e.Job.Message):
			whyNot.State, whyNot.Code, whyNot.Message = reason.Aside, code, e.Job.Message
		case code == reason.TopologyPlacementFailed && find.MentionsAvoided(e.Job.Message):
			whyNot.Code, whyNot.Message = code, e.Job.Message
		}
	}
	e.WhyNot, e.Assumed = &whyNot, snapshot.Assumed
	for i := range e.Asks {
		if at := slices.IndexFunc(whyNot.PodSets,
			func(ps reason.PodSet) bool { return ps.Name == e.Asks[i].PodSet }); at >= 0 {
			e.Asks[i].PerPod = whyNot.PodSets[at].PerPod // includes what LimitRanges and RuntimeClasses add
			e.Asks[i].Fewest, e.Asks[i].Together = whyNot.PodSets[at].Fewest, whyNot.PodSets[at].Together
		}
	}
	if e.Line != nil {
		e.Line.Position, e.Line.Length = whyNot.Position, whyNot.Length
	}
	if e.Job.State == Pending && (whyNot.State != reason.Aside || e.Job.Reason != string(whyNot.Code)) {
		// Use current numbers rather than the numbers at the last write of the status.
		e.Job.Reason, e.Job.Message = string(whyNot.Code), whyNot.Message
	}
	e.name(jobs, &whyNot)
}

// name notes the titles of the jobs whose Workloads the explanation names.
func (e *Explanation) name(jobs []Job, explanation *reason.Explanation) {
	titles := make(map[string]string, len(jobs))
	for i := range jobs {
		titles[jobs[i].Namespace+"/"+jobs[i].Workload] = jobs[i].FullTitle()
	}
	e.Titles = map[string]string{}
	for _, name := range explanation.Names() {
		if title, ok := titles[name.String()]; ok {
			e.Titles[name.String()] = title
		}
	}
}

// Title returns the title of the job that a Workload named by WhyNot or Replacing belongs to, or else of the Workload
// itself.
func (e *Explanation) Title(name reason.Name) string {
	if title, ok := e.Titles[name.String()]; ok {
		return title
	}
	return name.Namespace + "/workload/" + name.Name
}

func findWorkload(snapshot *Snapshot, job *Job) *kueue.Workload {
	for i := range snapshot.Workloads {
		if w := &snapshot.Workloads[i]; w.Namespace == job.Namespace && w.Name == job.Workload {
			return w
		}
	}
	return nil
}

// refusingSelector returns the namespaceSelector of a ClusterQueue that refuses the namespace, else nil. A queue
// without one refuses all.
func refusingSelector(snapshot *Snapshot, queue, namespace string) *metav1.LabelSelector {
	q := snapshot.clusterQueue(queue)
	in := slices.IndexFunc(snapshot.Namespaces, func(ns corev1.Namespace) bool { return ns.Name == namespace })
	if q == nil || in < 0 || workload.SelectsNamespace(q, &snapshot.Namespaces[in]) {
		return nil
	}
	if selector := q.Spec.NamespaceSelector; selector != nil {
		return selector
	}
	return &metav1.LabelSelector{}
}

func lineOf(snapshot *Snapshot, jobs []Job, job *Job) *Line {
	clusterQueue := job.ClusterQueue
	for i := range snapshot.LocalQueues {
		if lq := &snapshot.LocalQueues[i]; clusterQueue == "" && lq.Namespace == job.Namespace && lq.Name == job.Queue {
			clusterQueue = string(lq.Spec.ClusterQueue)
		}
	}
	if clusterQueue == "" {
		return nil
	}
	waiting := waitingByQueue(snapshot, jobs)[clusterQueue]
	position := slices.IndexFunc(waiting, func(w waiter) bool { return w.job.UID == job.UID })
	q := snapshot.clusterQueue(clusterQueue)
	closed := q != nil && workload.Closed(q) && ptr.Deref(q.Spec.StopPolicy, kueue.None) == kueue.None
	line := &Line{ClusterQueue: clusterQueue, Closed: closed, Missing: q == nil}
	if position >= 0 {
		line.Position, line.Length = position+1, len(waiting)
	}
	return line
}

// quotasFor returns the quotas of the resources that are requested.
func quotasFor(queue *Queue, requests corev1.ResourceList) []Quota {
	var quotas []Quota
	for _, quota := range queue.Quotas {
		if asked, ok := requests[quota.Resource]; ok && !asked.IsZero() {
			quotas = append(quotas, quota)
		}
	}
	return quotas
}

// asksUncovered reports whether the job requests a resource that its queue has no quota for, so that the engine
// evaluated none of its flavors.
func (e *Explanation) asksUncovered() bool {
	return e.WhyNot != nil && e.WhyNot.Code == reason.NoMatchingFlavor &&
		!slices.ContainsFunc(e.WhyNot.PodSets, func(ps reason.PodSet) bool { return len(ps.Flavors) > 0 })
}

// covers returns all resources that the queue has quota for.
func (q *Queue) covers() []corev1.ResourceName {
	covered := map[corev1.ResourceName]bool{}
	for _, quota := range q.Quotas {
		covered[quota.Resource] = true
	}
	return slices.Sorted(maps.Keys(covered))
}

// queuesFor returns the names of queues that jobs of the namespace may use: its LocalQueues, and the ClusterQueues
// whose namespace selector matches, as far as the reader may see them. A queue that is being deleted is none of them.
func queuesFor(snapshot *Snapshot, namespace string) []string {
	var names []string
	for i := range snapshot.LocalQueues {
		if lq := &snapshot.LocalQueues[i]; lq.Namespace == namespace && lq.DeletionTimestamp.IsZero() {
			names = append(names, lq.Name)
		}
	}
	at := slices.IndexFunc(snapshot.Namespaces, func(ns corev1.Namespace) bool { return ns.Name == namespace })
	for i := range snapshot.ClusterQueues {
		cq := &snapshot.ClusterQueues[i]
		if at >= 0 && cq.DeletionTimestamp.IsZero() && workload.SelectsNamespace(cq, &snapshot.Namespaces[at]) {
			names = append(names, cq.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Free returns what is left of a quota without borrowing, at least 0.
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
		if other.UID != job.UID && other.ClusterQueue == clusterQueue && !other.State.HasOutcome() {
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
