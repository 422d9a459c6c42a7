package listwatch

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/musterhq/muster/internal/metrics"
)

// unreadableTotal counts the objects that could not be decoded.
var unreadableTotal = metrics.NewCounter("muster_unreadable_objects_total",
	"Objects of jobs that Muster cannot decode, counted each time; the log names them. Muster continues with their previous state, or without them.", "kind")

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
func (o listThenWatch) filterUnreadable(event watch.Event) (watch.Event, bool) {
	bad, is := event.Object.(*unreadable)
	if !is {
		return event, true
	}
	if event.Type != watch.Deleted {
		o.onUnreadable.report(bad.GroupVersionKind(), &bad.ObjectMeta, bad.why)
		return event, false
	}
	gone, err := o.newObject()
	if err != nil {
		return watch.Event{Type: watch.Error, Object: statusOf(err)}, true
	}
	// Every Go type of the API embeds an ObjectMeta.
	*gone.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = bad.ObjectMeta
	event.Object = gone
	return event, true
}

// report reports an unreadable object to the log, to the metric, and to t.
func (t UnreadableFunc) report(kind schema.GroupVersionKind, object metav1.Object, why error) {
	unreadableTotal.WithLabelValues(kind.Kind).Inc()
	log.Log.Error(why, "an object cannot be decoded: Muster continues with its previous state, or without it",
		"kind", kind.GroupKind().String(), "object", client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}.String())
	if t != nil {
		t(kind, object, why)
	}
}

// decodeNext decodes the next object of a list into an empty one. why is set if the object is well-formed but does
// not fit the type: then it is decoded in part, and the decoder is positioned after it all the same.
func decodeNext(decoder *jsontext.Decoder, into runtime.Object) (why, err error) {
	depth := decoder.StackDepth()
	err = json.UnmarshalDecode(decoder, into, lenient)
	if err == nil || !isUnreadable(err) {
		return nil, err
	}
	why = fmt.Errorf("decoding: %w", err)
	for decoder.StackDepth() > depth {
		switch decoder.PeekKind() {
		case '}', ']':
			_, err = decoder.ReadToken()
		default:
			err = decoder.SkipValue()
		}
		if err != nil {
			return nil, err
		}
	}
	return why, nil
}
