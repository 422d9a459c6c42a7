package controller

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// Anyone who may write events in a namespace, as the role edit may, can write any number of events that report refused
// pods, each with a message of a megabyte, about any object. So the cache keeps of each only what is read, with the
// message cut, and a job reads no more events than it has objects, apart from events about its own objects.
const (
	// refusalIndex finds events by the UID of the object that they are about.
	refusalIndex = "involvedObject.uid"
	// refusalReads is how many bytes of a message are searched for the words of the API server, refusalKeeps how many
	// of these words are kept. Messages of Kubernetes and of Volcano have hundreds.
	refusalReads, refusalKeeps = 16 << 10, 4 << 10
)

// Refusals returns which events the cache keeps: only reports of refused pods.
func Refusals() cache.ByObject {
	return cache.ByObject{
		Field: fields.OneTermEqualSelector("reason", jobs.FailedCreate),
		Transform: func(object any) (any, error) {
			event, ok := object.(*corev1.Event)
			if !ok {
				return object, nil
			}
			return &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: event.Name, Namespace: event.Namespace, UID: event.UID,
					ResourceVersion:   event.ResourceVersion,
					CreationTimestamp: event.CreationTimestamp, DeletionTimestamp: event.DeletionTimestamp},
				Reason: event.Reason, Message: refusalMessage(event.Message), InvolvedObject: aboutOf(event.InvolvedObject),
				LastTimestamp: event.LastTimestamp, EventTime: event.EventTime, Series: event.Series,
			}, nil
		},
	}
}

// aboutOf returns what is read of the reference to an object. The API server bounds no field of a reference in an
// event: one with a longer text than the name of an object is to none that exists.
func aboutOf(object corev1.ObjectReference) corev1.ObjectReference {
	about := corev1.ObjectReference{APIVersion: object.APIVersion, Kind: object.Kind, Namespace: object.Namespace,
		Name: object.Name, UID: object.UID}
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

// refusals returns the refusals of pods by the UID of the object that the pods were created for, which is the job or
// one of its children. If a namespace has few events of refused pods, all are read at once; else they are read object
// by object.
func (r *reader[T]) refusals(ctx context.Context, job T,
	children []client.Object) (map[types.UID][]jobs.Refusal, error) {
	owners := []types.UID{job.GetUID()}
	for _, child := range children {
		switch child.(type) {
		case *corev1.Pod, *corev1.Service, *corev1.PersistentVolumeClaim: // no pods are created for these
		default:
			owners = append(owners, child.GetUID())
		}
	}
	out := map[types.UID][]jobs.Refusal{}
	events, err := r.refusalEvents(ctx, job.GetNamespace(), client.Limit(int64(len(owners)+1)))
	if err == nil && len(events) <= len(owners) {
		for event := range pointers.To(events) {
			out[event.InvolvedObject.UID] = append(out[event.InvolvedObject.UID], refusalOf(event))
		}
		return out, nil
	}
	for _, uid := range owners {
		if err == nil {
			events, err = r.refusalEvents(ctx, job.GetNamespace(), client.MatchingFields{refusalIndex: string(uid)})
		}
		for event := range pointers.To(events) {
			out[uid] = append(out[uid], refusalOf(event))
		}
	}
	return out, err
}

// refusalEvents lists events of the namespace that report refused pods. They are shared with the cache.
func (r *reader[T]) refusalEvents(ctx context.Context, namespace string,
	which client.ListOption) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, which); err != nil {
		return nil, fmt.Errorf("listing refusals of pods in %s: %w", namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return event.Reason != jobs.FailedCreate }), nil
}

// refusalOf returns what the event reports, whose message the cache has cut.
func refusalOf(event *corev1.Event) jobs.Refusal {
	// Events of events.k8s.io have no lastTimestamp.
	refusal := jobs.Refusal{Message: event.Message, Last: cmp.Or(event.LastTimestamp.Time, event.EventTime.Time)}
	if event.Series != nil {
		refusal.Last = event.Series.LastObservedTime.Time
	}
	return refusal
}

// statusInGo is an error of the API server as Volcano prints it in its events, as a Go value with addresses that differ
// each time.
var statusInGo = regexp.MustCompile(`&errors\.StatusError\{.*?\bMessage:("(?:[^"\\]|\\.)*")`)

// refusalMessage returns why a pod was refused, by the message of the event about that: the words of the API server,
// where the message has them. The result does not keep the message in memory.
func refusalMessage(message string) string {
	refusal := strings.TrimPrefix(message, "Error creating: ")
	if found := statusInGo.FindStringSubmatch(message[:min(len(message), refusalReads)]); found != nil {
		if unquoted, err := strconv.Unquote(found[1]); err == nil {
			refusal = unquoted
		}
	}
	if len(refusal) > refusalKeeps {
		return strings.ToValidUTF8(refusal[:refusalKeeps-len("…")], "") + "…"
	}
	return strings.Clone(refusal)
}

func isRefusal(object client.Object) bool {
	event, ok := object.(*corev1.Event)
	return ok && event.Reason == jobs.FailedCreate
}
