package jobs

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// FailedCreate is failedCreate for plans that create pods themselves, as in Create(pod).OrWarn(FailedCreate).
	FailedCreate = failedCreate
	// failedCreate is the reason of the events by which Kubernetes' controllers report that the API server refused a
	// pod.
	failedCreate = "FailedCreate"
	// refusalPatience is how long pods may be refused before the quota of their gang is released. Temporary shortages,
	// such as a ResourceQuota still used by terminating pods, usually end within it.
	refusalPatience = 15 * time.Second
	// refusedCause is the cause under which such an eviction is counted.
	refusedCause = "PodsRefused"
	// podsRefused says what cannot be done while pods are refused.
	podsRefused = "Its pods cannot be created"
)

// Anyone who may write events in a namespace, as the role edit may, can write any number of events that report refused
// pods, each with a message of a megabyte, about any object. So the cache keeps of each only what is read, with the
// message cut, and a job reads no more events than it has objects, apart from those about its own objects.
const (
	// refusalIndex finds events by the UID of the object that they are about.
	refusalIndex = "involvedObject.uid"
	// refusalReads is how many bytes of a message are searched for the words of the API server, refusalKeeps how many
	// of these words are kept. Messages of Kubernetes and of Volcano have hundreds.
	refusalReads, refusalKeeps = 16 << 10, 4 << 10
)

// Refusals returns which events the cache keeps: only those that report refused pods.
func Refusals() cache.ByObject {
	return cache.ByObject{
		Field: fields.OneTermEqualSelector("reason", failedCreate),
		Transform: func(object any) (any, error) {
			event, ok := object.(*corev1.Event)
			if !ok {
				return object, nil
			}
			return &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: event.Name, Namespace: event.Namespace, UID: event.UID, ResourceVersion: event.ResourceVersion,
					CreationTimestamp: event.CreationTimestamp, DeletionTimestamp: event.DeletionTimestamp},
				Reason: event.Reason, Message: saidOf(event.Message), InvolvedObject: aboutOf(event.InvolvedObject),
				LastTimestamp: event.LastTimestamp, EventTime: event.EventTime, Series: event.Series,
			}, nil
		},
	}
}

// aboutOf returns what is read of the reference to an object. The API server bounds no field of a reference in an
// event: one with a longer text than the name of an object is to none that exists.
func aboutOf(object corev1.ObjectReference) corev1.ObjectReference {
	about := corev1.ObjectReference{APIVersion: object.APIVersion, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, UID: object.UID}
	for _, text := range []string{about.APIVersion, about.Kind, about.Namespace, about.Name, string(about.UID)} {
		if len(text) > validation.DNS1123SubdomainMaxLength {
			return corev1.ObjectReference{}
		}
	}
	return about
}

// refusalKeys returns the refusalIndex key of an event.
func refusalKeys(object client.Object) []string {
	return []string{string(object.(*corev1.Event).InvolvedObject.UID)}
}

// Refusal is a message with which the API server refused a pod, and when that was last reported, by the reporter's
// clock.
type Refusal struct {
	Message string
	Last    time.Time
}

// Refused returns why the API server refuses pods of the object with UID owner, once this has lasted so long that the
// job, with so many pods missing in all, cannot be expected to get them. Until then, why is empty and due is when to
// check again; both are zero if no pods are refused. A job that got further pods in the meantime is making progress, so
// the time is counted from the last one. The age of the last refusal does not matter: controllers stop reporting
// refusals after a while.
func (s Seen[T]) Refused(owner types.UID, pods int32) (why string, due time.Time) {
	why = s.lastRefusal(owner)
	if why == "" {
		return "", time.Time{}
	}
	if due := s.MissingPods.with(pods, s.Now).Since.Add(refusalPatience); s.Now.Before(due) {
		return "", due
	}
	return why, time.Time{}
}

// lastRefusal returns why the API server last refused pods of the object with UID owner while not all pods of the job
// were ready, "" if it has not.
func (s Seen[T]) lastRefusal(owner types.UID) (why string) {
	if s.Admission.Grant != Admitted || s.Admission.UnreadySince.IsZero() {
		return ""
	}
	var last time.Time
	for _, r := range s.Refusals[owner] {
		// Older ones belong to an earlier admission, or were overcome.
		if !r.Last.Before(s.Admission.UnreadySince) && r.Last.After(s.MissingPods.Overcome) && !r.Last.Before(last) {
			last, why = r.Last, r.Message
		}
	}
	return why
}

// NoteRefusals sets in the progress whether the API server refuses pods of the object with UID owner, of a job with so
// many pods missing in all. It returns when to check again, zero for never.
func (s Seen[T]) NoteRefusals(p *Progress, owner types.UID, pods int32) (due time.Time) {
	p.Missing = pods
	p.Refused, due = s.Refused(owner, pods)
	if why := s.lastRefusal(owner); why != "" {
		p.Refusing = true
		p.Obstacle = podsRefused + ": " + why
	}
	return due
}

// refusals returns the refusals of pods by the UID of the object that the pods were created for, which is the job or
// one of its children. Of a namespace with few such events all are read at once, and otherwise those of each object.
func (r *reconciler[T]) refusals(ctx context.Context, job T, children []client.Object) (map[types.UID][]Refusal, error) {
	owners := []types.UID{job.GetUID()}
	for _, child := range children {
		switch child.(type) {
		case *corev1.Pod, *corev1.Service, *corev1.PersistentVolumeClaim: // no pods are created for these
		default:
			owners = append(owners, child.GetUID())
		}
	}
	out := map[types.UID][]Refusal{}
	events, err := r.refusalEvents(ctx, job.GetNamespace(), client.Limit(int64(len(owners)+1)))
	if err == nil && len(events) <= len(owners) {
		for i := range events {
			out[events[i].InvolvedObject.UID] = append(out[events[i].InvolvedObject.UID], refusalOf(&events[i]))
		}
		return out, nil
	}
	for _, uid := range owners {
		if err == nil {
			events, err = r.refusalEvents(ctx, job.GetNamespace(), client.MatchingFields{refusalIndex: string(uid)})
		}
		for i := range events {
			out[uid] = append(out[uid], refusalOf(&events[i]))
		}
	}
	return out, err
}

// refusalEvents lists events of the namespace that report refused pods. They are shared with the cache.
func (r *reconciler[T]) refusalEvents(ctx context.Context, namespace string, which client.ListOption) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, which); err != nil {
		return nil, fmt.Errorf("listing refusals of pods in %s: %w", namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return event.Reason != failedCreate }), nil
}

// refusalOf returns what the event reports, whose message the cache has cut.
func refusalOf(event *corev1.Event) Refusal {
	refusal := Refusal{Message: event.Message, Last: event.LastTimestamp.Time}
	if refusal.Last.IsZero() { // events.k8s.io events have no lastTimestamp
		refusal.Last = event.EventTime.Time
	}
	if event.Series != nil {
		refusal.Last = event.Series.LastObservedTime.Time
	}
	return refusal
}

// statusInGo is an error of the API server as Volcano prints it in its events, as a Go value with addresses that differ
// each time.
var statusInGo = regexp.MustCompile(`&errors\.StatusError\{.*?\bMessage:("(?:[^"\\]|\\.)*")`)

// saidOf returns why a pod was refused, by the message of the event about that: the words of the API server, where the
// message has them. The result does not keep the message in memory.
func saidOf(message string) string {
	said := strings.TrimPrefix(message, "Error creating: ")
	if found := statusInGo.FindStringSubmatch(message[:min(len(message), refusalReads)]); found != nil {
		if unquoted, err := strconv.Unquote(found[1]); err == nil {
			said = unquoted
		}
	}
	if len(said) > refusalKeeps {
		return strings.ToValidUTF8(said[:refusalKeeps-len("…")], "") + "…"
	}
	return strings.Clone(said)
}

// Backoff is how long a job whose pods were refused waits before it is tried again.
type Backoff struct {
	// Base is the first wait; it is doubled each time up to Max.
	Base, Max time.Duration
	// Limit is the number of retries after which the Workload is deactivated. Nil means no limit.
	Limit *int32
}

// release evicts the Workload of a job whose pods, or other objects, are refused, for this reason: a part of a gang is
// of no use, and other jobs can use the quota in the meantime.
func release(w *kueue.Workload, message string, backoff Backoff, now time.Time) {
	var tries int32
	if state := w.Status.RequeueState; state != nil {
		tries = ptr.Deref(state.Count, 0)
	}
	if tries < math.MaxInt32 {
		tries++
	}
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, Cause: refusedCause, Message: message}, now)
	if backoff.Limit != nil && tries > *backoff.Limit {
		workload.SetCondition(w, kueue.WorkloadDeactivationTarget, metav1.ConditionTrue, kueue.WorkloadRequeuingLimitExceeded, message, now)
		return
	}
	workload.Postpone(w, now.Add(workload.Backoff(tries, backoff.Base, backoff.Max)))
	w.Status.RequeueState.Count = ptr.To(tries)
}
