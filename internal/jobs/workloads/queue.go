package workloads

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// queueNotFound is the reason of the event on a job whose queue does not exist.
const queueNotFound = "QueueNotFound"

// Queue is the queue that a job goes to.
type Queue struct {
	// Name is the name of a LocalQueue in the job's namespace, "" if the job is not queued.
	Name string
	// Make is a LocalQueue to create first, nil if it exists or cannot be created.
	Make *kueue.LocalQueue
}

// runsAlready reports whether a job runs without a queue: it has children or may have pods, and is older than the
// LocalQueue that would take it in. A job younger than that queue has pods only because nothing held it back when it
// was created, and children only because a user has set their owner.
func runsAlready(job client.Object, described jobs.Description, facts jobs.QueueFacts, children int) bool {
	local := facts.Local[muster.DefaultQueue]
	created := job.GetCreationTimestamp()
	return (children > 0 || described.Running) && (local == nil || !local.CreationTimestamp.Before(&created))
}

// chooseQueue returns the queue of a job. started says that the job already runs without a queue: it is not taken in by
// a LocalQueue that is created later.
func chooseQueue(job client.Object, described jobs.Description, rule jobs.QueueRule, facts jobs.QueueFacts,
	started bool) Queue {
	name := cmp.Or(job.GetLabels()[kueue.QueueLabel], described.Queue)
	if name == "" {
		switch local := facts.Local[muster.DefaultQueue]; {
		case rule == jobs.QueueRequired:
			name = muster.DefaultQueue
		case local != nil && !jobs.MadeByMuster(local) && !started:
			return Queue{Name: muster.DefaultQueue}
		default:
			return Queue{}
		}
	}
	if facts.Local[name] == nil && workload.SelectsNamespace(facts.Cluster[name], facts.Namespace) {
		return Queue{Name: name, Make: localQueueFor(name, job.GetNamespace())}
	}
	return Queue{Name: name}
}

// Queue returns the queue of the job, and whether the job is queued at all: not if its owner is queued for it, nor
// without pods. A job that names a Workload that does not exist yet waits, though its queue is not known.
//
// A job that was queued stays in its queue for as long as its Workload exists, whatever it asks for by now and whoever
// owns it: otherwise the quota of its pods would be neither returned nor reclaimed.
func (j Job) Queue(s State) (Queue, bool) {
	if s.Own == nil && s.OwnerQueued {
		return Queue{}, false
	}
	facts := s.Facts.Queues
	queue := chooseQueue(j.Object, s.Described, j.Rule, facts, runsAlready(j.Object, s.Described, facts, s.Children))
	none := len(s.Described.PodSets) == 0
	switch {
	case s.Followed != nil && (queue.Name == "" || none && (s.Own != nil || s.Described.Paused)):
		return Queue{Name: string(s.Followed.Spec.QueueName)}, true
	case none:
		return Queue{}, false
	}
	return queue, queue.Name != "" || jobs.PrebuiltName(j.Object) != ""
}

// CannotQueue returns an event if the job waits for a queue that does not exist. It is reported only once the Workload
// says that it waits: the queue may have been created just before the job.
func CannotQueue(job client.Object, queue string, a jobs.Admission, queues jobs.QueueFacts) []write.Event {
	if a.Grant != jobs.Waiting || a.Why == "" || queue == "" {
		return nil
	}
	if why := queues.NotFound(queue, job.GetNamespace()); why != "" {
		event := write.Obstacle(queueNotFound, "The job waits: "+why)
		event.Key = queue // the queues listed in the message may change
		return []write.Event{event}
	}
	return nil
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

// asLabelValue returns as much of an object's name as fits into a label value.
func asLabelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-.")
}
