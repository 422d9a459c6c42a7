package rendezvous

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// defaultTimeouts apply to all jobs: pods that are created together start within Gather, and requests are held for less
// than Presence.
var defaultTimeouts = round.Timeouts{Gather: 30 * time.Second, Presence: protocol.Hold + 10*time.Second}

// registry finds the coordinator of each pod's job. Informer handlers keep it up to date with pods and jobs.
type registry struct {
	client   client.Client
	timeouts round.Timeouts

	mu sync.Mutex
	// byPod and byID hold the coordinators of jobs with rounds, by pod UID and by rendezvous ID.
	byPod map[string]*roundCoordinator
	byID  map[string]*roundCoordinator
	// attempts holds the coordinators of JobSets that restart in place, by JobSet UID, once one of their pods has
	// asked.
	attempts map[types.UID]*attemptCoordinator
	// targets are how many pods jobs with rounds are to have.
	targets   targets
	ownership ownership
	// events serializes informer events: a Job's event releases pods that waited for it, and must not overlap with newer
	// events of the released pods.
	events sync.Mutex
	// holds are the requests that are held. An event notifies only the requests that it may answer: a cluster has many
	// pods.
	holds holds
}

// newRegistry returns an empty registry. The client reads from the operator's cache.
func newRegistry(c client.Client) *registry {
	return &registry{
		client: c, timeouts: defaultTimeouts,
		byPod: map[string]*roundCoordinator{}, byID: map[string]*roundCoordinator{},
		attempts: map[types.UID]*attemptCoordinator{},
		targets:  newTargets(), ownership: newOwnership(), holds: newHolds(maxAgents),
	}
}

// updatePod records a pod as it is now, or as it was when it was deleted. Users may edit the label and the annotation:
// a pod is a member for as long as they ask for the same rounds.
func (r *registry) updatePod(pod *corev1.Pod, deleted bool) {
	defer r.holds.notify(pod.UID)
	id, least, most, asks := roundsOf(pod)
	r.leaveOthers(string(pod.UID), id)
	if !asks {
		r.ownership.forget(pod.UID)
		return
	}
	if !r.isMember(pod) && !r.ownership.belongs(pod, pod.Labels[muster.RendezvousLabel], deleted) {
		return
	}
	// A command that saves its state and exits 0 because its pod is being deleted has not done its part, unless it had
	// succeeded before.
	succeeded := pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp.IsZero()
	gone := deleted || !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed
	if found := r.roundCoordinatorOf(id, pod, least, most, gone); found != nil {
		found.updatePod(round.Pod{UID: string(pod.UID), Name: pod.Name, Index: indexOf(pod)}, succeeded, gone)
		r.record(string(pod.UID), found, deleted)
	} else if deleted { // the last pod of a job whose coordinator was closed before the pod was deleted
		r.mu.Lock()
		delete(r.byPod, string(pod.UID))
		r.mu.Unlock()
	}
}

// roundsOf returns the ID of the rounds that the pod asks for, and the bounds of their sizes. The
// namespace is part of the ID, so that jobs of different namespaces never meet, and so is the attempt of
// a JobSet: its next one begins anew, also the work of members that had succeeded, while pods of the last
// one may still exist.
func roundsOf(pod *corev1.Pod) (id string, least, most int, asks bool) {
	label := pod.Labels[muster.RendezvousLabel]
	least, most, err := sizes(pod.Annotations[muster.RendezvousSizeAnnotation])
	if label == "" || err != nil { // not as Muster created it
		return "", 0, 0, false
	}
	return roundsID(pod.Namespace, label, pod.Labels[jobset.RestartAttemptKey]), least, most, true
}

func roundsID(namespace, label, attempt string) string {
	return namespace + "/" + label + "/" + attempt
}

// leaveOthers ends the pod's membership in rounds with another ID.
func (r *registry) leaveOthers(uid, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.byPod[uid]
	if found == nil || found.id == id {
		return
	}
	delete(r.byPod, uid)
	found.removePod(uid)
	r.closeIfEmpty(found)
}

// isMember reports whether the pod was accepted into the rounds that it asks for.
func (r *registry) isMember(pod *corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.byPod[string(pod.UID)]
	return found != nil && found == r.byID[found.id]
}

// roundCoordinatorOf returns the job's coordinator, which is created with the first pod that is not gone; nil if there
// is none. The newest pod's annotation sets the sizes of the rounds, as older pods may carry outdated ones.
func (r *registry) roundCoordinatorOf(id string, pod *corev1.Pod, least, most int, gone bool) *roundCoordinator {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.byID[id]
	if found == nil {
		if gone {
			return nil
		}
		found = newRoundCoordinator(id, least, most, r.timeouts)
		found.setTarget(r.targets.of(id))
		r.byID[id] = found
	}
	if at := pod.CreationTimestamp.Time; !gone && !at.Before(found.sizedAt) {
		found.sizedAt = at
		found.resize(least, most)
	}
	return found
}

// record maps the pod to its coordinator for as long as the pod exists, and closes a coordinator whose pods have all
// failed, or are being deleted.
func (r *registry) record(uid string, found *roundCoordinator, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPod[uid] = found; deleted {
		delete(r.byPod, uid)
	}
	r.closeIfEmpty(found)
}

// closeIfEmpty closes the coordinator if it has no pods left. The caller holds r.mu.
func (r *registry) closeIfEmpty(c *roundCoordinator) {
	if !c.empty() {
		return
	}
	if r.byID[c.id] == c { // a job may have begun anew after all its pods had terminated
		delete(r.byID, c.id)
	}
	c.close()
}

// updateJobSet records that a JobSet has changed.
func (r *registry) updateJobSet(js *jobset.JobSet, deleted bool) {
	r.mu.Lock()
	found := r.attempts[js.UID]
	if deleted {
		delete(r.attempts, js.UID)
	}
	r.mu.Unlock()
	if found != nil {
		found.notify()
	}
	r.holds.notify(js.UID)
}

// updateJob records a batch/v1 Job, which may belong to a JobSet.
func (r *registry) updateJob(job *batchv1.Job, deleted bool) {
	defer r.holds.notify(job.UID)
	released := r.ownership.updateJob(job, deleted)
	switch id := r.ownership.idOf(job.UID); {
	case id != "":
		r.setTarget(job.UID, roundsID(job.Namespace, id, job.Spec.Template.Labels[jobset.RestartAttemptKey]), podsOfJob(job))
	case deleted:
		r.setTarget(job.UID, "", 0)
	}
	for _, pod := range released {
		r.updatePod(pod, false)
	}
}

// updateTrainingJob records how many workers a TrainingJob runs with.
func (r *registry) updateTrainingJob(job *breezeml.TrainingJob, deleted bool) {
	workers := int(job.Status.CurrentSize)
	if deleted || !job.DeletionTimestamp.IsZero() || job.Status.Stage != breezeml.StageRunning {
		workers = 0
	}
	r.setTarget(job.UID, roundsID(job.Namespace, string(job.UID), ""), workers)
}

// setTarget records how many pods the object, a TrainingJob or a Job of a JobSet, is to have in the rounds with the ID.
func (r *registry) setTarget(owner types.UID, id string, pods int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, changed := range r.targets.set(owner, id, pods) {
		if found := r.byID[changed]; found != nil {
			found.setTarget(r.targets.of(changed))
		}
	}
}

// firstIndexCompleted notifies the waiting agents of the Job's JobSet, if any: the pod with the Job's index 0 has
// completed, and may have rank 0, whose address they wait for.
func (r *registry) firstIndexCompleted(job *batchv1.Job) {
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return
	}
	r.mu.Lock()
	found := r.attempts[owner.UID]
	r.mu.Unlock()
	if found != nil {
		found.notify()
	}
}

// handle records an object as it is now, or as it was when it was deleted.
func (r *registry) handle(object any, deleted bool) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	r.events.Lock()
	defer r.events.Unlock()
	switch object := object.(type) {
	case *corev1.Pod:
		r.updatePod(object, deleted)
	case *jobset.JobSet:
		r.updateJobSet(object, deleted)
	case *batchv1.Job:
		r.updateJob(object, deleted)
	case *breezeml.TrainingJob:
		r.updateTrainingJob(object, deleted)
	}
}

// handler returns the handler of informer events for pods, Jobs, JobSets and TrainingJobs.
func (r *registry) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { r.handle(object, false) },
		UpdateFunc: func(before, object any) {
			// After an interruption of the watch, an object that was replaced meanwhile by another of its
			// name arrives as an update.
			if before.(client.Object).GetUID() != object.(client.Object).GetUID() {
				r.handle(before, true)
			}
			r.handle(object, false)
			if job, is := object.(*batchv1.Job); is && completedFirstIndex(job) && !completedFirstIndex(before.(*batchv1.Job)) {
				r.firstIndexCompleted(job)
			}
		},
		DeleteFunc: func(object any) { r.handle(object, true) },
	}
}

// sizes parses the bounds of a job's rounds, such as "2:4".
func sizes(text string) (least, most int, err error) {
	a, b, _ := strings.Cut(text, ":")
	least, err1 := strconv.Atoi(a)
	most, err2 := strconv.Atoi(b)
	if err := cmp.Or(err1, err2); err != nil || least < 1 || most < least {
		return 0, 0, fmt.Errorf("the sizes %q are not of the form 2:4", text)
	}
	return least, most, nil
}

// indexOf returns the sort key of a pod within its job: the index in its annotation, or else that of its Job within the
// JobSet followed by that of the pod within its Job.
func indexOf(pod *corev1.Pod) []int {
	if n, err := strconv.Atoi(pod.Annotations[muster.RendezvousIndexAnnotation]); err == nil {
		return []int{n}
	}
	var out []int
	for _, key := range []string{jobset.JobGlobalIndexKey, batchv1.JobCompletionIndexAnnotation} {
		if n, err := strconv.Atoi(cmp.Or(pod.Labels[key], pod.Annotations[key])); err == nil {
			out = append(out, n)
		}
	}
	return out
}
