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

// passedOver counts the objects that could not be read.
var passedOver = metrics.NewCounter("muster_unreadable_objects_total",
	"Objects of jobs that the API server takes and Muster cannot read, each time that it was to; the log names them. Muster goes on with what it read of them before, or without them.", "kind")

// Tell is told of an object that cannot be read, each time that it was to be: of which kind it is, what it says of itself, and why. It may be
// told by several at once.
type Tell func(kind schema.GroupVersionKind, object metav1.Object, why error)

// unreadable stands for an object that its type in Go cannot hold, as of a kind whose definition is not Muster's, or was another
// one when the object was made.
type unreadable struct {
	metav1.PartialObjectMetadata
	why error
}

// isUnreadable reports whether the error is one of an object that is well formed.
func isUnreadable(err error) bool {
	var is *json.SemanticError
	return errors.As(err, &is)
}

// asUnreadable is the well formed object of which no more can be read than its metadata.
func asUnreadable(data []byte, kind schema.GroupVersionKind, why error) (*unreadable, error) {
	out := &unreadable{why: why}
	if err := json.Unmarshal(data, &out.PartialObjectMetadata, lenient); err != nil {
		return nil, errors.Join(why, err)
	}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// readable leaves out of a watch what it tells of objects that cannot be read, but that one is gone: of that its metadata are enough.
func (o opening) readable(event watch.Event) (watch.Event, bool) {
	bad, is := event.Object.(*unreadable)
	if !is {
		return event, true
	}
	if event.Type != watch.Deleted {
		o.unread.of(bad.GroupVersionKind(), &bad.ObjectMeta, bad.why)
		return event, false
	}
	gone, err := o.newObject()
	if err != nil {
		return watch.Event{Type: watch.Error, Object: statusOf(err)}, true
	}
	*gone.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = bad.ObjectMeta // as all types in Go have it
	event.Object = gone
	return event, true
}

// of tells the log and the metric of an object that cannot be read, and who wants to know besides.
func (t Tell) of(kind schema.GroupVersionKind, object metav1.Object, why error) {
	passedOver.WithLabelValues(kind.Kind).Inc()
	log.Log.Error(why, "an object cannot be read: Muster goes on with what it read of it before, or without it",
		"kind", kind.GroupKind().String(), "object", client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}.String())
	if t != nil {
		t(kind, object, why)
	}
}

// decodeNext reads the next object of a list into an empty one. It is not whole, and why says so, where the object is well formed and
// its type cannot hold it: then what comes after it is next all the same.
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
