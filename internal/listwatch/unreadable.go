package listwatch

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/musterhq/muster/internal/metrics"
)

// unreadableTotal counts the objects that could not be decoded.
var unreadableTotal = metrics.NewCounter("muster_unreadable_objects_total",
	"Jobs, and Workloads without quota, that Muster cannot decode, counted each time; the log names them. Muster continues with their previous state, or without them.", "kind")

// UnreadableFunc is called each time that an object cannot be decoded, with the object's kind, its metadata, and the
// error. It may be called concurrently.
type UnreadableFunc func(kind schema.GroupVersionKind, object metav1.Object, why error)

// unreadable stands for an object that does not fit its Go type, because the definition in the cluster is not
// Muster's, or was another one when the object was created.
type unreadable struct {
	metav1.PartialObjectMetadata
	why error
}

// isUnreadable reports whether the error is that of a well-formed object that does not fit the Go type.
func isUnreadable(err error) bool {
	var is *json.SemanticError
	return errors.As(err, &is)
}

// asUnreadable decodes no more than the metadata of the object.
func asUnreadable(data []byte, kind schema.GroupVersionKind, why error) (*unreadable, error) {
	out := &unreadable{why: why}
	if err := json.Unmarshal(data, &out.PartialObjectMetadata, lenient); err != nil {
		return nil, errors.Join(why, err)
	}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// filterUnreadable drops watch events of unreadable objects, except deletions, for which the metadata is enough.
func (l listThenWatch) filterUnreadable(event watch.Event) (watch.Event, bool) {
	bad, is := event.Object.(*unreadable)
	if !is {
		return event, true
	}
	if event.Type != watch.Deleted {
		l.onUnreadable.report(bad.GroupVersionKind(), &bad.ObjectMeta, bad.why)
		return event, false
	}
	gone, err := l.newObject()
	if err != nil {
		return watch.Event{Type: watch.Error, Object: statusOf(err)}, true
	}
	// Every Go type of the API embeds an ObjectMeta.
	*gone.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = bad.ObjectMeta
	event.Object = gone
	return event, true
}

// report reports an unreadable object to the log, to the metric, and to t.
func (u UnreadableFunc) report(kind schema.GroupVersionKind, object metav1.Object, why error) {
	unreadableTotal.WithLabelValues(kind.Kind).Inc()
	log.Log.Error(why, "an object cannot be decoded: Muster continues with its previous state, or without it",
		"kind", kind.GroupKind().String(), "object",
		client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}.String())
	if u != nil {
		u(kind, object, why)
	}
}

// skipRule says which unreadable objects of a kind are skipped.
type skipRule int

const (
	// skipNone: an unreadable object makes the list or the watch fail.
	skipNone skipRule = iota
	// skipWaiting: Workloads without status.admission, which hold no quota, are skipped. Only the operator writes that
	// field, but whoever may create a Workload could otherwise keep the operator from reading all others.
	skipWaiting
	// skipAll: every one is skipped.
	skipAll
)

// skips reports whether an unreadable object is skipped: holds reports whether it may hold quota.
func (s skipRule) skips(holds func() bool) bool {
	return s == skipAll || s == skipWaiting && !holds()
}

// holdsQuota reports whether a Workload may hold quota, by its JSON.
func holdsQuota(data []byte) bool {
	var w struct {
		Status jsontext.Value `json:"status"`
	}
	return json.Unmarshal(data, &w, lenient) != nil || statusHoldsQuota(w.Status)
}

// statusHoldsQuota reports whether the JSON of a Workload's status has an admission. It also does if the JSON cannot be
// read. The JSON is empty if there is no status.
func statusHoldsQuota(status jsontext.Value) bool {
	if len(status) == 0 || status.Kind() == 'n' {
		return false
	}
	var s struct {
		Admission jsontext.Value `json:"admission"`
	}
	return json.Unmarshal(status, &s, lenient) != nil || len(s.Admission) > 0 && s.Admission.Kind() != 'n'
}
