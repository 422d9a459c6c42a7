package soak

import (
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

const clockFormat = "15:04:05.000"

// journal has what was done to the world, and every state of its jobs, Workloads, pods and queues, in order.
type journal struct {
	mu      sync.Mutex
	entries []entry
	// changed is when the last of the objects changed.
	changed time.Time
	accused map[string]bool // names of jobs whose history is of interest after a failure
}

// entry is a note or a state of an object, which was its last one if it is deleted.
type entry struct {
	at      time.Time
	note    string
	object  client.Object
	deleted bool
}

// watch starts the journal.
func (r *round) watch() *journal {
	r.Helper()
	j := &journal{accused: map[string]bool{}, changed: time.Now()}
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &jobset.JobSetList{}, &tensorstack.GenericJobList{},
		&lattice.LatticeJobList{}, &volcano.JobList{}, &breezeml.TrainingJobList{}, &kueue.WorkloadList{}, &corev1.PodList{},
		&kueue.LocalQueueList{}, &kueue.ClusterQueueList{}} {
		harness.Follow(r.World, list, func(event watch.Event) {
			o := event.Object.(client.Object)
			if o.GetNamespace() == "" && !strings.HasPrefix(o.GetName(), r.Namespace) {
				return // a queue of another round
			}
			j.changed = time.Now()
			j.entries = append(j.entries, entry{at: j.changed, object: o, deleted: event.Type == watch.Deleted})
		}, &j.mu)
	}
	return j
}

func (j *journal) note(text string) {
	if j == nil {
		return // the world is not watched yet
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry{at: time.Now(), note: text})
}

func (j *journal) accuse(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accused[name] = true
}

// still returns for how long nothing has changed.
func (j *journal) still() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Since(j.changed)
}

// since returns the states that the journal got since then.
func (j *journal) since(then time.Time) (out []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.object != nil && !e.at.Before(then) {
			out = append(out, e)
		}
	}
	return out
}

// waitsForCapacity reports whether it is a Workload that waits for quota or nodes.
func (e entry) waitsForCapacity() bool {
	o, is := e.object.(*kueue.Workload)
	if !is || e.deleted || o.Status.Admission != nil {
		return false
	}
	c := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadQuotaReserved)
	return c != nil && c.Status == metav1.ConditionFalse && ofCapacity(c.Reason)
}

// unfinished returns how many Workloads there are that have not finished.
func (j *journal) unfinished() int {
	open := map[types.UID]bool{}
	for _, e := range j.since(time.Time{}) {
		if o, ok := e.object.(*kueue.Workload); ok {
			open[o.UID] = !e.deleted && !meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished)
		}
	}
	count := 0
	for _, is := range open {
		if is {
			count++
		}
	}
	return count
}

// jobOf returns the name of the job that an object is, or belongs to, or that of a queue.
func jobOf(o client.Object) string {
	name := o.GetName()
	if _, is := o.(*kueue.Workload); is && len(o.GetOwnerReferences()) > 0 {
		name = o.GetOwnerReferences()[0].Name
	}
	if o.GetNamespace() == "" {
		return name
	}
	name, _, _ = strings.Cut(name, "-")
	return name
}

// String is the entry in a line.
func (e entry) String() string {
	text := e.note
	if e.object != nil {
		text = strings.TrimPrefix(fmt.Sprintf("%T ", e.object), "*") + e.object.GetName() + " " + summary(e.object)
	}
	if e.deleted {
		text += " DELETED"
	}
	return e.at.Format(clockFormat) + " " + text
}

func summary(object client.Object) string {
	switch o := object.(type) {
	case *kueue.Workload:
		text := fmt.Sprintf("of %s, holds %v", jobOf(o), sizes(o))
		for _, c := range o.Status.Conditions {
			text += fmt.Sprintf(", %s=%s %s", c.Type, c.Status, c.Reason)
		}
		return text
	case *corev1.Pod:
		return fmt.Sprintf("%s on %q, deleted %t, gated %t", o.Status.Phase, o.Spec.NodeName, o.DeletionTimestamp != nil,
			len(o.Spec.SchedulingGates) > 0)
	}
	return fmt.Sprintf("version %s, generation %d, deleted %t", object.GetResourceVersion(), object.GetGeneration(),
		object.GetDeletionTimestamp() != nil)
}

// sizes returns how many pods of each pod set a Workload was admitted with, nil if it holds no quota.
func sizes(o *kueue.Workload) (out []int32) {
	if o.Status.Admission == nil {
		return nil
	}
	for _, a := range o.Status.Admission.PodSetAssignments {
		out = append(out, *a.Count)
	}
	return out
}
