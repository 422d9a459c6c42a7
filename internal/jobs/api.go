package jobs

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/write"
)

// API describes a job API: the two functions that define its behavior, and the options that say what they need.
//
// Describe and Plan are pure: they take no client, context, clock or randomness, do not depend on map order, and do not
// modify their arguments.
type API[T client.Object] struct {
	// Kind is the kind of the jobs.
	Kind schema.GroupVersionKind
	// Describe returns what the job asks of a queue.
	Describe func(job T, facts Facts) Description
	// Plan returns what has to be done, given the observed state.
	Plan func(seen Seen[T]) Plan
	// Watch says which objects belong to a job, and which of their changes matter.
	Watch Watch
	// Queueing says which jobs are queued, and where.
	Queueing Queueing[T]
	// Reads says what Describe and Plan need to know besides the job and its children.
	Reads Reads[T]
	// Abilities says what Plan copes with. What Plan does not cope with is taken from what the job asks for.
	Abilities Abilities
	// StatusDelay is how long a status that can wait is held back. Zero means one second.
	StatusDelay time.Duration
	// PodLabel is a label that exactly the pods of a job have with its UID.
	PodLabel string
	// UnlabelledPods selects, by the job's name, pods without PodLabel, which an earlier version of Muster created.
	// The name alone does not tell jobs of the same name apart. Nil if there are none.
	UnlabelledPods func(name string) labels.Selector
}

// New returns an empty object of the kind.
func (a API[T]) New() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// Watch says which objects belong to a job, and which of their changes matter.
type Watch struct {
	// Owns lists the kinds that Plan creates, each as an empty object.
	Owns []client.Object
	// Optional lists kinds that Plan creates and that the cluster may not serve yet.
	Optional []OptionalKind
	// Targets returns the name and UID of the job that an object without a controller, of one of the kinds in Owns, is
	// meant for. The object is then treated as a child of that job. An empty UID matches any job of that name; an empty
	// name matches none. Nil if no object is meant for a job.
	Targets func(object client.Object) (name string, uid types.UID)
	// MadeFor returns the UID of the job of this API that the operator has created an object for, of one of the kinds in
	// Owns, going by what users cannot change; "" if it is none. If the object has lost its controller, it is still a
	// child of that job, which becomes its controller again. Nil if users can change all that would tell.
	MadeFor func(object client.Object) types.UID
	// Matters reports whether an update of a child can change the Plan. Nil means that every update can.
	Matters func(before, after client.Object) bool
	// Expected reports whether a new child is exactly what Plan created, untouched since, so that the job need not be
	// reconciled for it. Nil means that the job is reconciled for every new child.
	Expected func(child client.Object) bool
	// BatchDelay is how long changes of children are batched before the job is reconciled once for all of them.
	BatchDelay time.Duration
}

// Queueing says which jobs are queued, and where.
type Queueing[T client.Object] struct {
	// Rule says what happens to a job that names no queue.
	Rule QueueRule
	// Field returns the queue that the API's own field or annotation names, or "" if it names none. Nil if the API
	// has neither.
	Field func(job T) string
	// External says that another controller runs the jobs. Jobs in no queue are left alone: Plan is not called for them.
	External bool
	// Delegates says that jobs of this API are not queued themselves: the jobs that they create are.
	Delegates bool
	// CreatesJob reports whether the job would create the object, a job too, and is queued for it. It goes by the object's
	// kind, which is one of Owns, and by its name. Nil if jobs of this API create none, or none that they are queued for.
	CreatesJob func(job T, other client.Object) bool
	// RequeuesChanged says that a job whose pods were changed after its admission is queued again for the new ones. To
	// detect this, a digest of what the job's pods need is recorded on its Workload.
	RequeuesChanged bool
}

// Reads says what Describe and Plan need to know besides the job and its children.
type Reads[T client.Object] struct {
	// Related returns further objects that Plan needs to read and that the job may not control. Each is empty except
	// for its name and its namespace, which defaults to the job's. Nil if there are none.
	Related func(job T) []client.Object
	// Pods selects the pods of the job's children that Plan needs to read. Nil if it needs none.
	Pods *PodsOf[T]
	// Kinds lists the kinds for which Facts.Served says whether the cluster serves them. All jobs are reconciled
	// when one of these kinds is added or removed.
	Kinds []schema.GroupResource
	// NodeFeatures returns the features for which Facts.NodeFeatures says whether any node has them. Nil if there are
	// none.
	NodeFeatures func(job T) []NodeFeature
	// AwaitsNodes reports whether the job is to be planned again once nodes can take more pods, as Facts.NodesGained
	// says. Nil if no job is.
	AwaitsNodes func(job T) bool
}

// Abilities says what Plan copes with.
type Abilities struct {
	// Resizes says that Plan resizes elastic pod sets while the job runs, and reports Progress.Pods. The pod sets of
	// all other APIs have a fixed size while they run, whatever their templates say.
	Resizes bool
	// AnyPods says that Plan copes with pod sets that were admitted with no pods, as a pod set may be that has
	// muster.MinPodsAnnotation. Of jobs of other APIs the annotation is removed.
	AnyPods bool
	// Gangs says that Plan creates PodGroups where the cluster supports them.
	Gangs bool
	// Pauses says that Plan pauses a job at Admission.Until, when its queue wants the quota back. Workloads of other
	// kinds are deactivated at their limit, by package admission/lifecycle.
	Pauses bool
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
	// Limit is after how long the job's own API stops the running job, zero for never. Estimate is how long the job takes
	// according to the API's own field, zero if it has none.
	Limit, Estimate time.Duration
	// Running says that the job may already have pods without being queued. It matters only for kinds whose Plan
	// creates no children; a job of another kind is running if it has children.
	Running bool
	// HeldByChild says that a child may still have a Workload of its own, from a time when children were queued
	// themselves. While that Workload holds quota for the job's pods, the job is not queued a second time.
	HeldByChild bool
	// Mistake says why the job cannot be queued as it is, nil if it can. It is reported, and the job waits until it is
	// corrected.
	Mistake *write.Event
}

// OptionalKind is a kind that Plan creates and that the cluster may not serve yet. Facts.Served says that it is served
// once its objects are cached.
type OptionalKind struct {
	// Resource is the name of the kind's CustomResourceDefinition.
	Resource schema.GroupResource
	// Object is an empty object of the kind.
	Object client.Object
}

// PodBatchDelay is the BatchDelay of jobs that own their pods: too short for users to notice, and long enough that a
// job of thousands of pods is reconciled ten times a second, not once for each pod.
const PodBatchDelay = 100 * time.Millisecond
