package jobs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// API describes a job API: the kinds that it reads and creates, and the two functions that define its behavior.
// Describe and Plan are pure: they take no client, context, clock or randomness, do not depend on map order, and do not
// modify their arguments.
type API[T client.Object] struct {
	Kind schema.GroupVersionKind
	// Queue says what happens to a job that names no queue.
	Queue QueueRule
	// New returns an empty object of the kind.
	New func() T
	// Owns lists the kinds that Plan creates, each as an empty object.
	Owns []client.Object
	// Optional lists kinds that Plan creates and that the cluster may not serve yet.
	Optional []OptionalKind
	// Targets returns the name and UID of the job that an object without a controller, of one of the kinds in Owns, is
	// meant for. The object is then treated as a child of that job. An empty UID matches any job of that name; an empty
	// name matches none. Nil if there are no such objects.
	Targets func(object client.Object) (name string, uid types.UID)
	// MadeFor returns the UID of the job of this API that the operator has created an object for, of one of the kinds in
	// Owns, going by what users cannot change; "" if it is none. Such an object that has lost its controller is still
	// a child of that job, which becomes its controller again. Nil if users can change all that would tell.
	MadeFor func(object client.Object) types.UID
	// Matters reports whether an update of a child can change the Plan. Nil means that every update can.
	Matters func(before, after client.Object) bool
	// Expected reports whether a new child is exactly what Plan created, untouched since, so that the job need not be
	// reconciled for it. Nil means that the job is reconciled for every new child.
	Expected func(child client.Object) bool
	// BatchDelay is how long changes of children are batched before the job is reconciled once for all of them.
	BatchDelay time.Duration
	// StatusDelay is how long a status that can wait is held back. Zero means one second.
	StatusDelay time.Duration
	// QueueField returns the queue that the API's own field or annotation names, or "" if it names none. Nil if the API
	// has neither.
	QueueField func(job T) string
	// Pauses says that Plan pauses a job at Admission.Until, when its queue wants the quota back. Workloads of other
	// kinds are deactivated at that time.
	Pauses bool
	// AsksKinds lists the kinds for which Facts.Served says whether the cluster serves them. All jobs are reconciled
	// when one of these kinds is added or removed.
	AsksKinds []schema.GroupResource
	// PodLabels returns labels that select exactly the pods of the job with this UID.
	PodLabels func(uid types.UID) map[string]string
	// UnlabelledPods selects, by the job's name, pods without PodLabels, which an earlier version of Muster created.
	// The name alone does not tell jobs of the same name apart. Nil if there are none.
	UnlabelledPods func(name string) labels.Selector
	// Related returns further objects that Plan needs to read and that the job may not control. Each is empty except
	// for its name and its namespace, which defaults to the job's. Nil if there are none.
	Related func(job T) []client.Object
	// AsksNodes returns the features for which Facts.NodeFeatures says whether any node has them. Nil if there are
	// none.
	AsksNodes func(job T) []NodeFeature
	// AwaitsNodes reports whether the job is to be planned again once nodes can take more pods, as Facts.NodesGained
	// says. Nil if no job is.
	AwaitsNodes func(job T) bool
	// Resizes says that Plan resizes elastic pod sets while the job runs, and reports Progress.Pods. The pod sets of
	// all other APIs have a fixed size while they run, whatever their templates say.
	Resizes bool
	// AnyPods says that Plan copes with pod sets that were admitted with no pods, as a pod set may be that has
	// muster.MinPodsAnnotation. Of jobs of other APIs the annotation is removed.
	AnyPods bool
	// Gangs says that Plan creates PodGroups where the cluster supports them.
	Gangs bool
	// Pods selects the pods of the job's children that Plan needs to read. Nil if it needs none.
	Pods *PodsOf[T]
	// RequeuesChanged says that a job whose pods were changed after its admission is queued again for the new ones. To
	// detect this, a digest of what the job's pods need is recorded on its Workload.
	RequeuesChanged bool
	// External says that another controller runs the jobs. Those that are in no queue are left alone: Plan is not
	// called for them.
	External bool
	// CreatesJob reports whether the job would create the other job, going by its kind, one of Owns, and its name, and is
	// queued for it. Nil if jobs of this API create none, or none that they are queued for.
	CreatesJob func(job T, other client.Object) bool
	// Delegates says that jobs of this API are not queued themselves: the jobs that they create are.
	Delegates bool
	// Describe returns what the job asks of a queue.
	Describe func(job T, facts Facts) Description
	// Plan returns what has to be done, given the observed state.
	Plan func(seen Seen[T]) Plan
}

// PodsOf selects the pods, controlled by a job's children, that an API needs to read.
type PodsOf[T client.Object] struct {
	// Labels selects the pods of the job. Nil if Plan does not need them.
	Labels func(job T) map[string]string
	// JobOf returns the name of the job that the pod may matter to, or "" if there is none. Matters reports whether an
	// update of the pod can change that job's Plan. Both are nil if no pod makes its job be planned.
	JobOf   func(pod *corev1.Pod) string
	Matters func(before, after *corev1.Pod) bool
}

// Description is what a job asks of a queue.
type Description struct {
	// Foreign jobs belong to another controller and are left alone.
	Foreign bool
	// Queue is the queue that the job names otherwise than by the queue label, which takes precedence: by the API's own
	// field or an annotation. "" if it names none.
	Queue string
	// PriorityClass is the value of the API's own field, or "".
	PriorityClass string
	// Priority is the value of the API's own field if that holds a number, nil otherwise.
	Priority *int32
	// QueuedTime is when the job began to queue. Zero means the creation of its Workload.
	QueuedTime time.Time
	// Paused jobs ask for nothing, and have no Workload, until they are resumed.
	Paused bool
	// PodSets are the pod sets that run together, in the API's order. A job without any is not queued. If it has a
	// Workload with quota, it keeps that as it is until the job ends or is evicted; one without quota is deleted.
	PodSets []kueue.PodSet
	// Wanted is the most pods that a running job wants in its elastic pod set for now, 0 for all that it asks for. The
	// queue takes back what is above, and gives it no more.
	Wanted int32
	// Running says that the job may already have pods without being queued. It matters only for kinds whose Plan
	// creates no children; a job of another kind is running if it has children.
	Running bool
	// HeldByChild says that a child may still have a Workload of its own, from a time when such children were queued
	// themselves. While that Workload holds quota for the job's pods, the job is not queued a second time.
	HeldByChild bool
	// Mistake says why the job cannot be queued as it is, nil if it can. It is reported, and the job waits until it is
	// corrected.
	Mistake *Event
}

// Facts is an immutable snapshot of what Describe and Plan may use besides the job and its children.
type Facts struct {
	Queues     QueueFacts
	Priorities PriorityFacts
	// Queued holds the pod sets of the job's own Workload, nil if it has none: what the job was last queued for.
	Queued []kueue.PodSet
	// Flavors holds all ResourceFlavors by name.
	Flavors map[string]*kueue.ResourceFlavor
	// Served holds the kinds in API.AsksKinds and API.Optional that the cluster serves.
	Served map[schema.GroupResource]bool
	// NodeFeatures holds the features in API.AsksNodes that at least one node has.
	NodeFeatures map[NodeFeature]bool
	// NodesGained is when the nodes last became able to take pods that they could not take before, as far as this
	// operator has seen it: a node came or became ready, or lost a taint. Zero if it has seen none.
	NodesGained time.Time
	// NativeGangs says that kube-scheduler binds the pods of a PodGroup together.
	NativeGangs bool
	// StrictServiceNames says that the names of Services must begin with a letter.
	StrictServiceNames bool
	// Agent is what is needed to run the commands of pods under muster-agent.
	Agent podspec.Agent
}

// Nodes holds, by host name, the existing nodes on which a job was given places. They are shared with the cache and
// must not be modified.
type Nodes map[string]*corev1.Node

// NodeFeature is an amount of a resource, or a label, that a node may have.
type NodeFeature struct {
	Resource corev1.ResourceName
	Label    string
}

// Seen is the observed state from which a Plan follows.
type Seen[T client.Object] struct {
	// Job is the job as observed. It must not be modified.
	Job   T
	Facts Facts
	// Admission says whether the job may run, and with what.
	Admission Admission
	// Mistake says, for users, why the job is not queued as it is. Empty if it is.
	Mistake string
	// Children are the objects that the job controls. They must not be modified.
	Children []client.Object
	// Related holds those of the objects in API.Related that exist. They must not be modified.
	Related []client.Object
	// Pods holds the pods selected by API.Pods, as the cache keeps them.
	Pods []*corev1.Pod
	// Refusals holds the refusals of pods by the UID of the object that the pods were created for.
	Refusals map[types.UID][]Refusal
	// MissingPods is what was known before about the job's missing pods.
	MissingPods MissingPods
	// RefusedObjects says which of the objects that the job needs were refused when its last plan was carried out.
	RefusedObjects RefusedObjects
	// MustGoOn says that a write with OrGoOn was refused when the last plan was carried out.
	MustGoOn bool
	Now      time.Time
}

// Grant says whether a job may have pods.
type Grant string

const (
	// Unqueued jobs run as they are, without a queue.
	Unqueued Grant = "Unqueued"
	// Waiting jobs have no quota yet and must have no pods.
	Waiting Grant = "Waiting"
	// Admitted jobs run with the PodSets that they were given.
	Admitted Grant = "Admitted"
	// Stopping jobs have lost their admission and must terminate their pods.
	Stopping Grant = "Stopping"
)

// Admission is what a job was granted.
type Admission struct {
	Grant Grant
	// PodSets has an entry for each pod set of an Admitted job, by name.
	PodSets map[string]PodSetAdmission
	// Why is the queue's message about a Waiting job, "" if there is none yet.
	Why string
	// UnreadySince is since when not all pods of an Admitted job have been ready, according to its Workload. Zero if
	// all are.
	UnreadySince time.Time
	// Until is when the queue of an Admitted job wants its quota back, zero for never. Bound is how long after the
	// admission that is.
	Until time.Time
	Bound time.Duration
	// MissingFlavor is a flavor that was assigned to an Admitted job and does not exist, "" if there is none.
	MissingFlavor string
	// Deactivated says that the job's Workload is not admitted until it is activated again.
	Deactivated bool
	// Conflict says which pod set update of an admission check cannot be applied to the pods of an Admitted job, "" if
	// all can.
	Conflict string
	// NeedsDigest is the digest, by needsDigest, of what the job's pods needed when an Admitted job was queued; "" if
	// it was not recorded.
	NeedsDigest string
}

// MayRun reports whether the job may have pods.
func (a Admission) MayRun() bool { return a.Grant == Unqueued || a.Grant == Admitted }

// HoldsQuota reports whether quota is held for the job's pods: while they run, and while they terminate.
func (a Admission) HoldsQuota() bool { return a.Grant == Admitted || a.Grant == Stopping }

// MayStart reports whether new pods may be created: the job may run, and all that has to be added to its pods is known.
// Running pods are not affected by a missing flavor.
func (a Admission) MayStart() bool {
	return a.MayRun() && a.MissingFlavor == "" && a.Conflict == ""
}

// PodSetAdmission is what a pod set was granted.
type PodSetAdmission struct {
	// Count is how many pods were admitted.
	Count int32
	// Asked is how many pods the Workload asks for. Left is how many it has quota for now, without those that were not
	// admitted and those whose quota was reclaimed.
	Asked, Left int32
	// Template is the pod template as it was admitted, which is what the quota is for, even if the job's own template
	// has changed since.
	Template *corev1.PodTemplateSpec
	// Injection applies to every pod of the set. For returns it with what depends on a pod's rank.
	podspec.Injection
	// Places holds the places of the pods in rank order. Empty if the pod set is not placed.
	Places podspec.Places

	// Pods is the admitted spec of pods that have places.
	Pods corev1.PodSpec
	// Nodes holds the nodes of the places.
	Nodes Nodes
	// SliceSize is the size of the smallest slices that must each lie in one domain, 0 if there are none.
	SliceSize int32
	// Tied says that slices or a group keep the pod set from growing until its next admission.
	Tied bool
}

// Plan is what has to be done for a job. The zero value is nothing.
type Plan struct {
	// First holds writes that are done before Writes, concurrently. If one of them fails, only those of Writes that
	// change the job's Workload are done.
	First []Write
	// Writes are done concurrently, in no particular order.
	Writes []Write
	// Status is the job with the status that it should have, nil to leave the status alone. It is written only if it
	// differs.
	Status client.Object
	// StatusFirst writes the status before the writes. It is for statuses that the writes depend on, such as a count of
	// attempts.
	StatusFirst bool
	// StatusOnError returns the status, and its event, to write in place of Status and Events if the API server refused
	// a write. If it is nil, Status and Events are written all the same.
	StatusOnError func(error) (client.Object, Event)
	// StatusCanWait says that nobody waits for what Status reports, such as how many children are in which state. It is
	// held back until a later plan has more to write, or for API.StatusDelay.
	StatusCanWait bool
	// StatusYields says that users may wait for Status, but no job does. While the API server is overloaded, it is held
	// back for up to half a minute.
	StatusYields bool
	// Events are recorded once Status is written.
	Events []Event
	// Due is when to plan again even if nothing happens, zero for never.
	Due time.Time
	// DueIfDone is when to plan again if the plan is carried out, because no event may follow; zero for never. A plan
	// that fails is not retried by it: it is later with every plan, and would have a write that fails repeated for ever
	// without a backoff.
	DueIfDone time.Time
	// Progress is what is reported on the job's Workload.
	Progress Progress
	// IfGone is an object that was not observed. If a live read finds that it exists and that the job controls it,
	// nothing of the plan is done: what cannot be undone must not depend on a cache that may be stale. The read costs a
	// request each time, so IfGone is set only when something is about to change.
	IfGone client.Object
	// StartedUnheld says that the plan stops a job that waits for quota and was started by somebody else.
	StartedUnheld bool
	// Unfinished says that the next plan creates more children. It is made as soon as this one is carried out.
	Unfinished bool
	// childBytes is how much memory the children take that CreateChild has added.
	childBytes int
}

// DueBy makes the job be planned again at the given time or earlier. The zero time changes nothing.
func (p *Plan) DueBy(at time.Time) {
	if !at.IsZero() && (p.Due.IsZero() || at.Before(p.Due)) {
		p.Due = at
	}
}

// DeletePods adds writes that delete those of the pods that are not terminating yet.
func (p *Plan) DeletePods(pods []*corev1.Pod) {
	for _, pod := range pods {
		if pod.DeletionTimestamp.IsZero() {
			p.Writes = append(p.Writes, Delete(pod, metav1.DeletePropagationBackground))
		}
	}
}

// Progress is how far a job has come, as far as its queue needs to know.
type Progress struct {
	// Active says that pods of the job may still use its quota.
	Active bool
	// Ready says that all pods that may exist by now are ready or have ended for good, or that readiness is not awaited
	// any more. Pods of a stage that still waits for another one are not missing.
	Ready bool
	// Stage is the last stage that may start and is not ready, nil if only pods of the first one are not ready, or if the
	// job has no stages.
	Stage *Stage
	// Pods counts, by elastic pod set, the pods that may still use quota, terminating ones included. The quota that a
	// shrinking pod set gives up becomes free once it has no more pods than it was granted.
	Pods map[string]int32
	// Needed counts, by elastic pod set, the pods that run or are still to run, if the job knows: it wants no more.
	Needed map[string]int32
	// Reclaimable counts, by pod set, the pods that need no quota any more in this admission: they have ended and will not
	// be run again, or the job has fewer pods by now.
	Reclaimable map[string]int32
	// Outcome is set once the job has ended.
	Outcome *Outcome
	// Ended says that the job has ended, but keeps quota for pods that still run: Outcome is set when these are gone.
	// RunOn counts, by elastic pod set, those that are not being stopped: it wants no more than these.
	Ended bool
	RunOn map[string]int32
	// Restarts counts how often the job, or a part of it, was restarted after a failure, as far as its status says.
	Restarts int64
	// Missing counts the pods that should exist and were not created. Refusing says that the API server refused some of
	// them, if only once.
	Missing  int32
	Refusing bool
	// Refused says why the API server refuses objects that the job cannot go on without, "" if it does not. RefusedWhat
	// says what cannot be done; "" means that pods cannot be created.
	Refused, RefusedWhat string
	// Obstacle says what the API server refuses, though the job does not give up for that yet; "" if it refuses nothing.
	Obstacle string
	// FailedToStart says why the job can never start with what it was given, "" if it can.
	FailedToStart string
	// Requeue says that the job has no pods and now asks for other ones than its Workload does, so that the Workload
	// has to be replaced.
	Requeue bool
}

// Stage is a part of a job that starts after other parts, such as a replicated job with dependsOn. Its pods have the time
// that pods may take to become ready from the start of the stage on.
type Stage struct {
	Name string
	// Since is when its first pods, or their Jobs, were started. Zero means that this is not known yet.
	Since time.Time
}

// LastStage returns the stage that started last, or a, of two that may be nil.
func LastStage(a, b *Stage) *Stage {
	switch {
	case a == nil:
		return b
	case b == nil || !b.Since.IsZero() && !b.Since.After(a.Since):
		return a
	}
	return b
}

// Outcome is how a job ended.
type Outcome struct {
	Succeeded bool
	Message   string
}

// Event is an event that is recorded on the job.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type, Reason, Message string
	// WithStatus says that the event belongs to the status: it is held back if the status is.
	WithStatus bool
	// Standing says that the event reports a state, not an action: it is recorded once, and again only after the state
	// had ended.
	Standing bool
	// Key, unless empty, identifies a standing event in place of its message: a new message alone does not record it
	// again.
	Key string
	// Correctable says that the event is about a field that users can correct. withConsequence adds what follows from
	// it.
	Correctable bool
	// Immutable is like Correctable, for a field that cannot be changed.
	Immutable bool
}

// Obstacle returns a standing Warning about something that keeps the job from making progress.
func Obstacle(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, Standing: true}
}

// Warning returns an Event of type Warning.
func Warning(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// Normal returns an Event of type Normal.
func Normal(reason, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

// ChildrenOf returns the children of type C.
func ChildrenOf[C client.Object](children []client.Object) []C {
	var out []C
	for _, child := range children {
		if c, ok := child.(C); ok {
			out = append(out, c)
		}
	}
	return out
}
