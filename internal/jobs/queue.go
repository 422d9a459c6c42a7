package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// QueueRule says what a job API does with a job that names no queue.
type QueueRule int

const (
	// QueueOptional jobs start at once, as users of JobSet, batch Job and GenericJob
	// expect, unless a person made a LocalQueue named default in the namespace.
	QueueOptional QueueRule = iota
	// QueueRequired jobs go to the queue default.
	QueueRequired
)

// QueueFacts is what the cluster says of the queues that a job may mean.
type QueueFacts struct {
	// Local are the LocalQueues of the job's namespace by name; Cluster are all
	// ClusterQueues by name.
	Local   map[string]*kueue.LocalQueue
	Cluster map[string]*kueue.ClusterQueue
	// Namespace is the job's.
	Namespace *corev1.Namespace
}

// Serves reports whether jobs of the namespace can go to the queue of the name.
func (f QueueFacts) Serves(name string) bool {
	return f.Local[name] != nil || workload.Takes(f.Cluster[name], f.Namespace)
}

// Names are those of all queues that a job could name, in order.
func (f QueueFacts) Names() []string {
	names := slices.Collect(maps.Keys(f.Local))
	for name := range f.Cluster {
		if f.Local[name] == nil && f.Serves(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// queueNotFound is the reason of the event of a job whose queue there is not.
const queueNotFound = "QueueNotFound"

// NotFound says that there is no queue of the name, and which there are instead, "" if jobs of the namespace can go there.
func (f QueueFacts) NotFound(name, namespace string) string {
	if f.Serves(name) {
		return ""
	}
	there := "there are no queues"
	if names := f.Names(); len(names) > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	return notFound(name, namespace) + there
}

func notFound(name, namespace string) string {
	return fmt.Sprintf("Queue %s is neither a LocalQueue of namespace %s nor a ClusterQueue that takes its jobs: ", name, namespace)
}

// SaysNotFound reports whether a text says what NotFound does, whatever queues there were instead when it was said: those come and go,
// and it is not worth a write of each job that waits.
func SaysNotFound(text, name, namespace string) bool {
	return strings.HasPrefix(text, notFound(name, namespace))
}

// queueChoice is the queue that a job goes to.
type queueChoice struct {
	// Name of a LocalQueue of the job's namespace; "" if no queue has a say.
	Name string
	// Make is a LocalQueue to be made first, nil if there is one or none can be.
	Make *kueue.LocalQueue
}

// runsAlready reports whether a job runs in no queue: it has children, or it may have
// pods and was there before the LocalQueue that would take it in. One that came after
// that queue got its pods only because nobody held it.
func runsAlready(job client.Object, described Description, facts QueueFacts, children int) bool {
	if children > 0 {
		return true
	}
	local := facts.Local[muster.DefaultQueue]
	created := job.GetCreationTimestamp()
	return described.Running && (local == nil || !local.CreationTimestamp.Before(&created))
}

// chooseQueue says which queue a job goes to. started tells that it runs without
// one already: a LocalQueue that comes later does not take in who is running.
func chooseQueue(job client.Object, described Description, rule QueueRule, facts QueueFacts, started bool) queueChoice {
	name := job.GetLabels()[kueue.QueueLabel]
	if name == "" {
		name = described.Queue
	}
	if name == "" {
		switch local := facts.Local[muster.DefaultQueue]; {
		case rule == QueueRequired:
			name = muster.DefaultQueue
		case local != nil && !madeByMuster(local) && !started:
			return queueChoice{Name: muster.DefaultQueue}
		default:
			return queueChoice{}
		}
	}
	if facts.Local[name] == nil && workload.Takes(facts.Cluster[name], facts.Namespace) {
		return queueChoice{Name: name, Make: localQueueFor(name, job.GetNamespace())}
	}
	return queueChoice{Name: name}
}

// IsQueued reports whether a queue has a say in a job of the rule QueueOptional that is
// just being made: it names one, or a person has made the LocalQueue default, nil if
// there is none, and it is not of a served kind's own making.
func IsQueued(job client.Object, local *kueue.LocalQueue, served []schema.GroupKind) bool {
	if ownedByServed(job, served) {
		return false
	}
	return job.GetLabels()[kueue.QueueLabel] != "" || prebuiltName(job) != "" || local != nil && !madeByMuster(local)
}

func madeByMuster(q *kueue.LocalQueue) bool {
	_, made := q.Labels[muster.MadeForLabel]
	return made
}

func localQueueFor(clusterQueue, namespace string) *kueue.LocalQueue {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{
			Name:      clusterQueue,
			Namespace: namespace,
			Labels:    map[string]string{muster.MadeForLabel: asLabelValue(clusterQueue)},
		},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(clusterQueue)},
	}
}

// asLabelValue is as much of an object's name as a label can hold.
func asLabelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-.")
}

// ownedByServed reports whether the object belongs to a job of one of the kinds:
// then it is that job that queues.
func ownedByServed(object client.Object, served []schema.GroupKind) bool {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false
	}
	for _, kind := range served {
		if kind.Group == gv.Group && kind.Kind == owner.Kind {
			return true
		}
	}
	return false
}
