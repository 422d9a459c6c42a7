package jobs

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// FailedCreate is failedCreate, for plans that make pods themselves: Create(pod).OrWarn.
	FailedCreate = failedCreate
	// failedCreate is the reason of events by which Kubernetes' controllers tell that
	// the API server refused a pod.
	failedCreate = "FailedCreate"
	// refusalPatience is how long pods may be refused before their gang is released:
	// what is short for a moment, such as a ResourceQuota that pods of others are just
	// leaving, passes.
	refusalPatience = 15 * time.Second
	// refusedCause is counted with the reason of such an eviction.
	refusedCause = "PodsRefused"
)

// Refusals is what the cache keeps of events: those by which refused pods are told.
func Refusals() cache.ByObject {
	return cache.ByObject{
		Field: fields.OneTermEqualSelector("reason", failedCreate),
		Transform: func(object any) (any, error) {
			if event, ok := object.(*corev1.Event); ok {
				event.ManagedFields, event.Annotations = nil, nil
			}
			return object, nil
		},
	}
}

// Refusal is one thing that the API server said when it refused a pod, and when it last did, by the clock of who tells of it.
type Refusal struct {
	Message string
	Last    time.Time
}

// Refused says why the API server has refused pods of the object, which lacks some,
// for so long that the job, which lacks so many in all, cannot be expected to get them, "" if it has not; and when
// to look again, zero for never. One that has got others meanwhile can: it is refused from the last one on. How long ago the
// last refusal was told does not matter: who refuses is told no more of it after a while.
func (s Seen[T]) Refused(lacking types.UID, pods int32) (why string, due time.Time) {
	if s.Admission.Grant != Admitted || s.Admission.UnreadySince.IsZero() {
		return "", time.Time{}
	}
	var last time.Time
	for _, r := range s.Refusals[lacking] {
		// Others are of an earlier admission, or were overcome.
		if !r.Last.Before(s.Admission.UnreadySince) && r.Last.After(s.Lacked.Overcome) && !r.Last.Before(last) {
			last, why = r.Last, r.Message
		}
	}
	if why == "" {
		return "", time.Time{}
	}
	if due := s.Lacked.with(pods, s.Now).Since.Add(refusalPatience); s.Now.Before(due) {
		return "", due
	}
	return why, time.Time{}
}

// NoteRefusals has the progress tell whether the API server refuses pods of the object, of a job that lacks so many in all, and
// says when to look again, zero for never.
func (s Seen[T]) NoteRefusals(p *Progress, lacking types.UID, pods int32) (due time.Time) {
	p.Lacking = pods
	p.Refused, due = s.Refused(lacking, pods)
	p.Refusing = p.Refusing || p.Refused != "" || !due.IsZero()
	return due
}

// refusals reads what the API server said to the controllers of a namespace's jobs.
func (r *reconciler[T]) refusals(ctx context.Context, namespace string) (map[types.UID][]Refusal, error) {
	var list corev1.EventList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing refusals of pods in %s: %w", namespace, err)
	}
	out := map[types.UID][]Refusal{}
	for i := range list.Items {
		event := &list.Items[i]
		if event.Reason != failedCreate {
			continue
		}
		refusal := Refusal{Message: strings.TrimPrefix(event.Message, "Error creating: "), Last: event.LastTimestamp.Time}
		if refusal.Last.IsZero() { // of the newer kind of event
			refusal.Last = event.EventTime.Time
		}
		if event.Series != nil {
			refusal.Last = event.Series.LastObservedTime.Time
		}
		out[event.InvolvedObject.UID] = append(out[event.InvolvedObject.UID], refusal)
	}
	return out, nil
}

// Backoff is how long a job waits whose pods were refused, before it is tried again.
type Backoff struct {
	// Base is the first wait, doubled each time up to Max.
	Base, Max time.Duration
	// Limit is how often it is tried again before its Workload is deactivated, nil for
	// without end.
	Limit *int32
}

// release takes the admission back from a job whose pods are refused: a part of a gang
// is of no use, and others can use its quota meanwhile.
func release(w *kueue.Workload, refusal string, backoff Backoff, now time.Time) {
	var tries int32
	if state := w.Status.RequeueState; state != nil {
		tries = ptr.Deref(state.Count, 0)
	}
	if tries < math.MaxInt32 {
		tries++
	}
	message := "The API server refuses its pods: " + refusal
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, Cause: refusedCause, Message: message}, now)
	if backoff.Limit != nil && tries > *backoff.Limit {
		workload.SetCondition(w, kueue.WorkloadDeactivationTarget, metav1.ConditionTrue, kueue.WorkloadRequeuingLimitExceeded, message, now)
		return
	}
	workload.Postpone(w, now.Add(workload.Backoff(tries, backoff.Base, backoff.Max)))
	w.Status.RequeueState.Count = ptr.To(tries)
}
