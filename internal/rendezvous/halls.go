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
var patience = round.Patience{Gather: 30 * time.Second, Presence: protocol.Hold + 10*time.Second}

// halls knows where each pod belongs. It is told of pods, Jobs and JobSets by an informer's
// handlers.
type halls struct {
	client   client.Client
	patience round.Patience

	mu sync.Mutex
	// byPod and byID are the halls of jobs with rounds, by the UID of a pod and by the ID
	// of the rounds.
	byPod map[string]*roundHall
	byID  map[string]*roundHall
	// attempts are the halls of JobSets that restart in place, of those whose pods asked.
	attempts map[client.ObjectKey]*attemptHall
	parents  parents
	// telling has one thing be told at a time: pods that waited for their Job, and what
	// becomes of them meanwhile.
	telling sync.Mutex
	came    news
}

// newHalls makes halls that nobody is in. The client reads from the operator's cache.
func newHalls(c client.Client) *halls {
	return &halls{
		client: c, patience: patience,
		byPod: map[string]*roundHall{}, byID: map[string]*roundHall{}, attempts: map[client.ObjectKey]*attemptHall{},
		parents: newParents(),
	}
}

// hallOf finds where a pod belongs; nil if that is not known yet.
func (h *halls) hallOf(ctx context.Context, who caller) (hall, error) {
	h.mu.Lock()
	place := h.byPod[who.UID]
	h.mu.Unlock()
	if place != nil {
		return place, nil
	}
	var pod corev1.Pod
	if err := h.client.Get(ctx, client.ObjectKey{Namespace: who.Namespace, Name: who.Name}, &pod); err != nil || string(pod.UID) != who.UID {
		return nil, client.IgnoreNotFound(err)
	}
	if name := pod.Labels[jobset.JobSetNameKey]; name != "" && pod.Labels[muster.RendezvousLabel] == "" {
		if is, err := h.isOf(ctx, &pod, name); err != nil || !is {
			return nil, err
		}
		return h.attemptsOf(client.ObjectKey{Namespace: who.Namespace, Name: name}), nil
	}
	return nil, nil
}

// isOf reports whether a Job of the JobSet controls the pod. Labels say what whoever makes a pod wants them to, and the first in rank
// is whom all others are led to.
func (h *halls) isOf(ctx context.Context, pod *corev1.Pod, name string) (bool, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/") {
		return false, nil
	}
	var job batchv1.Job
	if err := h.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &job); err != nil || job.UID != owner.UID {
		return false, client.IgnoreNotFound(err)
	}
	set := metav1.GetControllerOf(&job)
	return set != nil && set.Kind == "JobSet" && strings.HasPrefix(set.APIVersion, jobset.GroupVersion.Group+"/") && set.Name == name, nil
}

func (h *halls) attemptsOf(key client.ObjectKey) *attemptHall {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := h.attempts[key]
	if place == nil {
		place = &attemptHall{client: h.client, key: key}
		h.attempts[key] = place
	}
	return place
}

func (h *halls) arrivals() <-chan struct{} { return h.came.changed() }

// pod tells of a pod as it is now, or was when it was deleted.
func (h *halls) pod(pod *corev1.Pod, deleted bool) {
	if name := pod.Labels[jobset.JobSetNameKey]; name != "" {
		h.mu.Lock()
		place := h.attempts[client.ObjectKey{Namespace: pod.Namespace, Name: name}]
		h.mu.Unlock()
		if place != nil {
			place.tell()
		}
	}
	id := pod.Labels[muster.RendezvousLabel]
	if id == "" {
		h.came.tell()
		return
	}
	least, most, err := sizes(pod.Annotations[muster.RendezvousSizeAnnotation])
	if err != nil {
		return // nobody of ours made it
	}
	if !h.seated(pod) && !h.parents.bear(pod, id, deleted) {
		h.came.tell()
		return
	}
	lives := !deleted && pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	// A command that saved, and ended well because its pod is deleted, has not done its part. One that
	// had said so before.
	succeeded := pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp.IsZero()
	// A job of one namespace never meets one of another, whatever its pods say.
	id = hallID(pod)
	if place := h.roundsOf(id, pod, least, most, lives); place != nil {
		place.pod(round.Pod{UID: string(pod.UID), Name: pod.Name, Index: indexOf(pod)}, lives, succeeded)
		h.seat(id, string(pod.UID), place, deleted)
	} else if deleted { // the last one, of a hall that was forgotten when it ended
		h.mu.Lock()
		delete(h.byPod, string(pod.UID))
		h.mu.Unlock()
	}
	h.came.tell()
}

// hallID is the name of the hall that the pod asks for.
func hallID(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Labels[muster.RendezvousLabel] }

// seated reports whether the pod was let into the hall that it asks for.
func (h *halls) seated(pod *corev1.Pod) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := h.byPod[string(pod.UID)]
	return place != nil && place == h.byID[hallID(pod)]
}

// roundsOf is the hall of a job, which begins with the first pod that lives. The sizes of
// its rounds are those that the newest pod was made with: the older ones know no better.
func (h *halls) roundsOf(id string, pod *corev1.Pod, least, most int, lives bool) *roundHall {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := h.byID[id]
	if place == nil {
		if !lives {
			return nil
		}
		place = newRoundHall(least, most, h.patience)
		h.byID[id] = place
	}
	if at := pod.CreationTimestamp.Time; lives && !at.Before(place.sizedAt) {
		place.sizedAt = at
		place.resize(least, most)
	}
	return place
}

// seat remembers where a pod belongs, as long as it is there, and forgets a hall in which
// nobody lives any more.
func (h *halls) seat(id, uid string, place *roundHall, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byPod[uid] = place; deleted {
		delete(h.byPod, uid)
	}
	if place.empty() {
		delete(h.byID, id)
		place.close()
	}
}

// jobSet tells of a JobSet.
func (h *halls) jobSet(js *jobset.JobSet, deleted bool) {
	key := client.ObjectKeyFromObject(js)
	h.mu.Lock()
	place := h.attempts[key]
	if deleted {
		delete(h.attempts, key)
	}
	h.mu.Unlock()
	if place != nil {
		place.tell()
	}
}

// job tells of a batch/v1 Job, which may be a JobSet's.
func (h *halls) job(job *batchv1.Job, deleted bool) {
	for _, pod := range h.parents.job(job, deleted) {
		h.pod(pod, false)
	}
}

// handler passes what an informer of pods, Jobs or JobSets sees.
func (h *halls) handler() cache.ResourceEventHandler {
	take := func(object any, deleted bool) {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		h.telling.Lock()
		defer h.telling.Unlock()
		switch object := object.(type) {
		case *corev1.Pod:
			h.pod(object, deleted)
		case *jobset.JobSet:
			h.jobSet(object, deleted)
		case *batchv1.Job:
			h.job(object, deleted)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			take(object, false)
			h.came.tell() // a pod may have asked before its Job was seen
		},
		UpdateFunc: func(_, object any) { take(object, false) },
		DeleteFunc: func(object any) { take(object, true) },
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
