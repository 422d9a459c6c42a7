package rendezvous

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// patience of rounds: pods that come into being together are there within it, and a
// request is held less long than Presence.
var defaultTimeouts = round.Timeouts{Gather: 30 * time.Second, Presence: protocol.Hold + 10*time.Second}

// halls knows where each pod belongs. It is told of pods, Jobs and JobSets by an informer's
// handlers.
type registry struct {
	client   client.Client
	timeouts round.Timeouts

	mu sync.Mutex
	// byPod and byID are the halls of jobs with rounds, by the UID of a pod and by the ID
	// of the rounds.
	byPod map[string]*roundCoordinator
	byID  map[string]*roundCoordinator
	// attempts are the halls of JobSets that restart in place, of those whose pods asked.
	attempts  map[client.ObjectKey]*attemptCoordinator
	ownership ownership
	// telling has one thing be told at a time: pods that waited for their Job, and what
	// becomes of them meanwhile.
	events  sync.Mutex
	arrived broadcast
}

// newHalls makes halls that nobody is in. The client reads from the operator's cache.
func newRegistry(c client.Client) *registry {
	return &registry{
		client: c, timeouts: defaultTimeouts,
		byPod: map[string]*roundCoordinator{}, byID: map[string]*roundCoordinator{}, attempts: map[client.ObjectKey]*attemptCoordinator{},
		ownership: newOwnership(),
	}
}

// hallOf finds where a pod belongs; nil if that is not known yet.
func (r *registry) coordinatorOf(ctx context.Context, agent caller) (coordinator, error) {
	r.mu.Lock()
	found := r.byPod[agent.UID]
	r.mu.Unlock()
	if found != nil {
		return found, nil
	}
	var pod corev1.Pod
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: agent.Name}, &pod); err != nil || string(pod.UID) != agent.UID {
		return nil, client.IgnoreNotFound(err)
	}
	if name := pod.Labels[jobset.JobSetNameKey]; name != "" && pod.Labels[muster.RendezvousLabel] == "" {
		if is, err := r.isPodOfJobSet(ctx, &pod, name); err != nil || !is {
			return nil, err
		}
		return r.attemptCoordinatorOf(client.ObjectKey{Namespace: agent.Namespace, Name: name}), nil
	}
	return nil, nil
}

// isOf reports whether a Job of the JobSet controls the pod. Labels say what whoever makes a pod wants them to, and the first in rank
// is whom all others are led to.
func (r *registry) isPodOfJobSet(ctx context.Context, pod *corev1.Pod, name string) (bool, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") {
		return false, nil
	}
	var job batchv1.Job
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &job); err != nil || job.UID != owner.UID {
		return false, client.IgnoreNotFound(err)
	}
	set := metav1.GetControllerOf(&job)
	return set != nil && set.Kind == "JobSet" && strings.HasPrefix(set.APIVersion, jobset.GroupVersion.Group+"/") && set.Name == name, nil
}

func (r *registry) attemptCoordinatorOf(key client.ObjectKey) *attemptCoordinator {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.attempts[key]
	if found == nil {
		found = &attemptCoordinator{client: r.client, key: key}
		r.attempts[key] = found
	}
	return found
}

func (r *registry) arrivals() <-chan struct{} { return r.arrived.changed() }

// pod tells of a pod as it is now, or was when it was deleted.
func (r *registry) updatePod(pod *corev1.Pod, deleted bool) {
	if name := pod.Labels[jobset.JobSetNameKey]; name != "" {
		r.mu.Lock()
		found := r.attempts[client.ObjectKey{Namespace: pod.Namespace, Name: name}]
		r.mu.Unlock()
		if found != nil {
			found.notify()
		}
	}
	id := pod.Labels[muster.RendezvousLabel]
	if id == "" {
		r.arrived.notify()
		return
	}
	least, most, err := sizes(pod.Annotations[muster.RendezvousSizeAnnotation])
	if err != nil {
		return // nobody of ours made it
	}
	if !r.isMember(pod) && !r.ownership.belongs(pod, id, deleted) {
		r.arrived.notify()
		return
	}
	lives := !deleted && pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	// A command that saved, and ended well because its pod is deleted, has not done its part. One that
	// had said so before.
	succeeded := pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp.IsZero()
	// A job of one namespace never meets one of another, whatever its pods say.
	id = rendezvousID(pod)
	if found := r.roundCoordinatorOf(id, pod, least, most, lives); found != nil {
		found.updatePod(round.Pod{UID: string(pod.UID), Name: pod.Name, Index: indexOf(pod)}, lives, succeeded)
		r.record(id, string(pod.UID), found, deleted)
	} else if deleted { // the last one, of a hall that was forgotten when it ended
		r.mu.Lock()
		delete(r.byPod, string(pod.UID))
		r.mu.Unlock()
	}
	r.arrived.notify()
}

// hallID is the name of the hall that the pod asks for.
func rendezvousID(pod *corev1.Pod) string {
	return pod.Namespace + "/" + pod.Labels[muster.RendezvousLabel]
}

// seated reports whether the pod was let into the hall that it asks for.
func (r *registry) isMember(pod *corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.byPod[string(pod.UID)]
	return found != nil && found == r.byID[rendezvousID(pod)]
}

// roundsOf is the hall of a job, which begins with the first pod that lives. The sizes of
// its rounds are those that the newest pod was made with: the older ones know no better.
func (r *registry) roundCoordinatorOf(id string, pod *corev1.Pod, least, most int, lives bool) *roundCoordinator {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.byID[id]
	if found == nil {
		if !lives {
			return nil
		}
		found = newRoundCoordinator(least, most, r.timeouts)
		r.byID[id] = found
	}
	if at := pod.CreationTimestamp.Time; lives && !at.Before(found.sizedAt) {
		found.sizedAt = at
		found.resize(least, most)
	}
	return found
}

// seat remembers where a pod belongs, as long as it is there, and forgets a hall in which
// nobody lives any more.
func (r *registry) record(id, uid string, found *roundCoordinator, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPod[uid] = found; deleted {
		delete(r.byPod, uid)
	}
	if found.empty() {
		delete(r.byID, id)
		found.close()
	}
}

// jobSet tells of a JobSet.
func (r *registry) updateJobSet(js *jobset.JobSet, deleted bool) {
	key := client.ObjectKeyFromObject(js)
	r.mu.Lock()
	found := r.attempts[key]
	if deleted {
		delete(r.attempts, key)
	}
	r.mu.Unlock()
	if found != nil {
		found.notify()
	}
}

// job tells of a batch/v1 Job, which may be a JobSet's.
func (r *registry) updateJob(job *batchv1.Job, deleted bool) {
	for _, pod := range r.ownership.updateJob(job, deleted) {
		r.updatePod(pod, false)
	}
}

// handler passes what an informer of pods, Jobs or JobSets sees.
func (r *registry) handler() cache.ResourceEventHandler {
	handle := func(object any, deleted bool) {
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
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			handle(object, false)
			r.arrived.notify() // a pod may have asked before its Job was seen
		},
		UpdateFunc: func(_, object any) { handle(object, false) },
		DeleteFunc: func(object any) { handle(object, true) },
	}
}

// sizes reads the bounds of a job's rounds, as "2:4".
func sizes(text string) (least, most int, err error) {
	a, b, _ := strings.Cut(text, ":")
	least, err1 := strconv.Atoi(a)
	most, err2 := strconv.Atoi(b)
	if err := cmp.Or(err1, err2); err != nil || least < 1 || most < least {
		return 0, 0, fmt.Errorf("the sizes %q are not of the form 2:4", text)
	}
	return least, most, nil
}

// indexOf orders the pods of a job: by the index that was given to the pod, or else by
// those of its Job in a JobSet and of the pod in its Job.
func indexOf(pod *corev1.Pod) []int {
	if n, err := strconv.Atoi(pod.Annotations[muster.RendezvousIndexAnnotation]); err == nil {
		return []int{n}
	}
	var out []int
	for _, key := range []string{jobset.JobGlobalIndexKey, "batch.kubernetes.io/job-completion-index"} {
		if n, err := strconv.Atoi(cmp.Or(pod.Labels[key], pod.Annotations[key])); err == nil {
			out = append(out, n)
		}
	}
	return out
}
