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

// API is a job API: where its objects come from and the two functions that give
// them meaning. Both functions are pure: they take no client, context, clock or
// randomness, do not depend on the order of maps, and change nothing they are
// given.
type API[T client.Object] struct {
	Kind schema.GroupVersionKind
	// Queue says what happens to a job that names no queue.
	Queue QueueRule
	// New returns an empty object of the kind.
	New func() T
	// Owns are empty objects of the kinds that Plan creates.
	Owns []client.Object
	// Later are kinds that Plan creates and that the cluster may not serve yet.
	Later []LateKind
	// Targets gives the job, by name and UID, that an object of one of the kinds of Owns is meant for though nobody controls it:
	// it is seen as a child of that job. A name without a UID is any job of that name, "" is none. Nil if there are no such objects.
	Targets func(object client.Object) (name string, uid types.UID)
	// Matters reports whether a change of a child may change a Plan; nil if all may.
	Matters func(before, after client.Object) bool
	// Expected reports whether a new child is as Plan had it made, and nothing has happened to it since: then the job is not
	// looked at for it. Nil if it is for every new child.
	Expected func(child client.Object) bool
	// Gathers is for how long changes of children are gathered before the job is looked at,
	// so that many changes cost one look.
	Gathers time.Duration
	// CountsEvery is how long a status that can wait is kept back; a second if zero.
	CountsEvery time.Duration
	// QueueField is the queue that the API's own field names, "" if it names none; nil
	// without such a field.
	QueueField func(job T) string
	// Pauses says that Plan pauses a job whose queue wants its quota back, at
	// Admission.Until. Workloads of other kinds are deactivated then.
	Pauses bool
	// Asks are the kinds of which Facts say whether the cluster serves them. When one comes or
	// goes, all jobs are looked at again.
	Asks []schema.GroupResource
	// PodLabels are labels that the pods of the job with the UID bear, and no others.
	PodLabels func(uid types.UID) map[string]string
	// UnlabelledPods selects, by the job's name, pods without PodLabels: those of jobs that an earlier version started. A later job
	// may have the same name. Nil if there are none.
	UnlabelledPods func(name string) labels.Selector
	// Beside names what else Plan wants to see: objects that the job may not control,
	// each empty but for its name and namespace, the job's if it has none. Nil for none.
	Beside func(job T) []client.Object
	// AsksNodes names features of nodes of which Facts say whether any node has them; nil
	// for none.
	AsksNodes func(job T) []NodeFeature
	// Resizes says that Plan changes the size of elastic pod sets while the job runs, and
	// tells Progress.Pods. Pod sets of other APIs have one size for as long as they run,
	// whatever their templates say.
	Resizes bool
	// Gangs says that Plan makes PodGroups where the cluster has them.
	Gangs bool
	// Pods says which pods of its children Plan wants to see; nil for none.
	Pods *PodsOf[T]
	// QueuesAnew says that a job which was given other pods since its admission queues anew for them: what it asked for is noted
	// on its Workload.
	QueuesAnew bool
	// External jobs are carried out by another controller: one that is in no queue is
	// left alone, Plan is not asked.
	External bool
	// Repeats says that a job may make others of its kind, and that these queue.
	Repeats bool
	// Delegates says that jobs of the API queue for nothing: what they make does.
	Delegates bool
	// Describe says what the job asks for.
	Describe func(job T, facts Facts) Description
	// Plan says what follows from what was seen.
	Plan func(seen Seen[T]) Plan
}

// PodsOf says which pods an API wants to see that its children control.
type PodsOf[T client.Object] struct {
	// Labels are those that the pods of the job bear, nil if Plan does not ask for them.
	Labels func(job T) map[string]string
	// JobOf is the name of the job that the pod may matter to, "" if it matters to none;
	// Heeds whether a change of it does.
	JobOf func(pod *corev1.Pod) string
	Heeds func(before, after *corev1.Pod) bool
}

// Description is what a job asks of a queue.
type Description struct {
	// Foreign jobs are another controller's: they are left alone.
	Foreign bool
	// Queue is what the API's own field says, "" if it has none. The queue label
	// takes precedence.
	Queue string
	// PriorityClass is what the API's own field says, "" if it has none.
	PriorityClass string
	// Priority is what the API's own field says where it holds a number, nil if it has
	// none.
	Priority *int32
	// QueuedTime is since when the job queues, zero for since its Workload was made.
	QueuedTime time.Time
	// Paused jobs ask for nothing until they are resumed: they have no Workload.
	Paused bool
	// PodSets are the pods that run together, in the API's order.
	PodSets []kueue.PodSet
	// Running jobs may have pods without a queue's say. It matters only for kinds
	// whose Plan creates no children; those that have children run.
	Running bool
	// Held says that a child may have a Workload, of the time when children of its kind queued for themselves. While that holds quota
	// for what the job runs, the job does not queue for it a second time.
	Held bool
	// Mistake is why the job cannot be queued as it is, nil if it can. It is told, and
	// the job waits until it is mended.
	Mistake *Event
}

// Facts is what a Describe or Plan may know beside the job and its children, read
// at one moment. It is never changed.
type Facts struct {
	Queues     QueueFacts
	Priorities PriorityFacts
	// Flavors are all ResourceFlavors by name.
	Flavors map[string]*kueue.ResourceFlavor
	// Served are those of the kinds that the API asks about which the cluster serves.
	Served map[schema.GroupResource]bool
	// Nodes are those of the features that the API asks about which some node has.
	Nodes map[NodeFeature]bool
	// NativeGangs says that kube-scheduler binds the pods of a PodGroup together.
	NativeGangs bool
	// Agent is what it takes to put muster-agent round the commands of pods.
	Agent podspec.Agent
}

// Nodes are, by host name, those nodes on which a job was given places and that exist. They are shared: nobody
// changes one.
type Nodes map[string]*corev1.Node

// NodeFeature is something that a node may have: an amount of a resource, or a label.
type NodeFeature struct {
	Resource corev1.ResourceName
	Label    string
}

// Seen is everything that a Plan follows from.
type Seen[T client.Object] struct {
	// Job as the API server has it. Not to be changed.
	Job   T
	Facts Facts
	// Admission is whether the job may run, and with what.
	Admission Admission
	// Mistake is why the job is not queued as it is, for people, "" if it is.
	Mistake string
	// Children are the objects that the job controls. Not to be changed.
	Children []client.Object
	// Beside are those of the objects that the API asked to see that there are.
	Beside []client.Object
	// Pods are those that the API asked to see, as the cache keeps them.
	Pods []*corev1.Pod
	// Refusals of pods by the UID of the object whose pods they would be.
	Refusals map[types.UID][]Refusal
	// Lacked is what the job was known to lack before.
	Lacked Lacked
	Now    time.Time
}

// Grant is whether a job may have pods.
type Grant string

const (
	// Unqueued jobs run as they are: no queue has a say.
	Unqueued Grant = "Unqueued"
	// Waiting jobs must have no pods; quota was not given yet.
	Waiting Grant = "Waiting"
	// Admitted jobs run with the PodSets that they were given.
	Admitted Grant = "Admitted"
	// Stopping jobs lost their quota and must end their pods.
	Stopping Grant = "Stopping"
)

// Admission is what a job was granted.
type Admission struct {
	Grant Grant
	// PodSets has an entry for each pod set of an Admitted job, by name.
	PodSets map[string]PodSetAdmission
	// Why is what the queue says of a Waiting job, "" if nothing yet.
	Why string
	// UnreadySince is since when an Admitted job has lacked ready pods, as far as its
	// Workload was told, zero if it lacks none.
	UnreadySince time.Time
	// Until is when the queue of an Admitted job wants its quota back, zero for never; Bound
	// is how long after the admission that is.
	Until time.Time
	Bound time.Duration
	// MissingFlavor is a flavor that an Admitted job was given and that does not
	// exist, "" if there is none.
	MissingFlavor string
	// Deactivated says that the job's Workload is not to be admitted until somebody
	// activates it.
	Deactivated bool
	// Conflict says what admission checks add to the pods of an Admitted job that
	// cannot be added, "" if all can.
	Conflict string
	// Noted is what the pods needed that an Admitted job has asked for, as askedFor has it; "" if nobody noted it.
	Noted string
}

// MayRun reports whether the job may have pods.
func (a Admission) MayRun() bool { return a.Grant == Unqueued || a.Grant == Admitted }

// HoldsQuota reports whether quota is held for what the job's pods use: while they run, and
// also after they were told to end.
func (a Admission) HoldsQuota() bool { return a.Grant == Admitted || a.Grant == Stopping }

// MayStart reports whether pods may be started: the job may run, and where and how is
// known. Pods that run are not touched for the lack of a flavor.
func (a Admission) MayStart() bool {
	return a.MayRun() && a.MissingFlavor == "" && a.Conflict == ""
}

// PodSetAdmission is what a pod set was granted.
type PodSetAdmission struct {
	// Count is how many pods were admitted.
	Count int32
	// Asked is how many pods the Workload is for, and Left how many it has quota for
	// now: others were not admitted, or have given theirs back.
	Asked, Left int32
	// Template of the pods as it was admitted: what the quota is for, whatever the job has
	// come to say since.
	Template *corev1.PodTemplateSpec
	// Injection is for every pod of the set; For has what depends on a pod's rank too.
	podspec.Injection
	// Places of the pods in the order of ranks; none where nobody gives places.
	Places podspec.Places

	// Pods is the spec of pods that have places, as it was admitted.
	Pods corev1.PodSpec
	// Nodes have the places.
	Nodes Nodes
	// SliceSize is the size of the smallest slices that each lie in one domain, 0 if there
	// are no slices.
	SliceSize int32
}

// Plan is what a job needs done. The zero value is nothing.
type Plan struct {
	// First are done before Writes, side by side. If one of them fails, only those of Writes are done that tell the queue something.
	First []Write
	// Writes are done side by side, in no order.
	Writes []Write
	// Status is the job with the status it should have, nil to leave it. It is
	// written only if it differs.
	Status client.Object
	// StatusFirst has the status written before the writes, for statuses that the
	// writes rely on, such as a count of attempts.
	StatusFirst bool
	// StatusOnError gives the status, and the event of it, where the API server refused a
	// write, in place of Status and Events; nil to tell those all the same.
	StatusOnError func(error) (client.Object, Event)
	// StatusCanWait says that Status tells nothing that anybody waits for, such as how many
	// children are in which state. It is for the next plan to tell, if that has more to
	// tell or a second has passed, unless the API says otherwise.
	StatusCanWait bool
	// StatusYields says that people may wait for Status, but no job does: while the API server has
	// more to do than it can, it is kept back for some seconds.
	StatusYields bool
	// Events are told once Status is written.
	Events []Event
	// Due is when to plan again though nothing happens, zero for never.
	Due time.Time
	// Progress is what the job's Workload is told.
	Progress Progress
	// IfGone is an object that was not seen. If the API server says that it is there all the same, as the job's, nothing of the plan is
	// done: what cannot be undone must not rest on a cache that may lag. It costs a request each time, so it is set only for news.
	IfGone client.Object
	// StartedUnheld says that the plan stops a job that nobody held when it was
	// created.
	StartedUnheld bool
}

// DueBy has the job planned again at the time, or earlier; the zero time changes nothing.
func (p *Plan) DueBy(at time.Time) {
	if !at.IsZero() && (p.Due.IsZero() || at.Before(p.Due)) {
		p.Due = at
	}
}

// DeletePods has those of the pods be deleted that are not going already.
func (p *Plan) DeletePods(pods []*corev1.Pod) {
	for _, pod := range pods {
		if pod.DeletionTimestamp.IsZero() {
			p.Writes = append(p.Writes, Delete(pod, metav1.DeletePropagationBackground))
		}
	}
}

// Progress is how far a job is, as its queue needs to know.
type Progress struct {
	// Active says that pods of the job may still use its quota.
	Active bool
	// Ready says that all its pods are ready or have ended for good, or that nobody waits for
	// them any more.
	Ready bool
	// Pods counts, by elastic pod set, the pods that may still use quota, those that are
	// going among them. What such a pod set is to give up is somebody else's once it has no
	// more of them than it was granted.
	Pods map[string]int32
	// Reclaimable counts, by pod set, pods that have ended and that will not be run
	// again in this admission.
	Reclaimable map[string]int32
	// Outcome is set once the job has ended.
	Outcome *Outcome
	// Restarts is how often anything of the job was started anew because some of it had failed, as far as its status tells.
	Restarts int64
	// Lacking counts the pods that are to be there and were not made, and Refusing says that some of them
	// were refused, be it for a moment.
	Lacking  int32
	Refusing bool
	// Refused is why the API server refuses pods without which the job cannot go on,
	// "" if it does not.
	Refused string
	// FailedToStart is why the job can never be started with what it was given, "" if
	// it can.
	FailedToStart string
	// QueuesAnew says that the job has no pods, and asks for other ones than its Workload is for: that
	// gives way to a new Workload.
	QueuesAnew bool
}

// Outcome is how a job ended.
type Outcome struct {
	Succeeded bool
	Message   string
}

// Event is told to people, on the job.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type, Reason, Message string
	// WithStatus says that the event is of what the status says: it waits if that does.
	WithStatus bool
	// Standing says that the event tells what holds, not what was done: it is told once, and again only after it had ceased to hold.
	Standing bool
	// About, unless it is empty, is what a standing event is known by in place of its message: a change of the message alone is no news.
	About string
	// Mendable says that the event is of what the job says, and may say otherwise: what follows of that is added where it is known.
	Mendable bool
	// Fixed says so of what the job cannot say otherwise.
	Fixed bool
}

// Obstacle is a Warning of what keeps the job from going on for as long as it is told.
func Obstacle(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, Standing: true}
}

// Warning is an Event of that type.
func Warning(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// Normal is an Event of that type.
func Normal(reason, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

// ChildrenOf picks the children of one type.
func ChildrenOf[C client.Object](children []client.Object) []C {
	var out []C
	for _, child := range children {
		if c, ok := child.(C); ok {
			out = append(out, c)
		}
	}
	return out
}
