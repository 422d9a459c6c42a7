package listwatch

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// codec decodes watches of one kind of custom resource. Anything that is not formatted as API servers format events,
// and errors and bookmarks, is left to the codec that it wraps.
type codec struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
	skip   skipRule
}

// SupportedMediaTypes returns only JSON: custom resources have no protobuf.
func (c codec) SupportedMediaTypes() []runtime.SerializerInfo {
	for _, info := range c.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			stream := *info.StreamSerializer
			stream.Serializer = eventDecoder{stream.Serializer}
			stream.Framer = lines{stream.Framer}
			info.StreamSerializer = &stream
			return []runtime.SerializerInfo{info}
		}
	}
	return nil
}

// DecoderToVersion returns the decoder for the objects of a watch.
func (c codec) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return objectDecoder{
		Decoder: c.NegotiatedSerializer.DecoderToVersion(d, version),
		scheme:  c.scheme,
		kind:    c.kind,
		skip:    c.skip,
		head:    fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, c.kind.GroupVersion(), c.kind.Kind),
	}
}

// eventDecoder splits the event of a watch by its prefix and suffix, without parsing the object.
type eventDecoder struct{ runtime.Serializer }

// Decode sets the event's type and its raw object, which shares memory with data.
func (e eventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return e.Serializer.Decode(data, defaults, into)
	}
	rest, begins := bytes.CutPrefix(data, []byte(`{"type":"`))
	kind, object, follows := bytes.Cut(rest, []byte(`","object":`))
	object, ends := bytes.CutSuffix(bytes.TrimSuffix(object, []byte("\n")), []byte("}"))
	if !begins || !follows || !ends {
		return e.Serializer.Decode(data, defaults, into)
	}
	event.Type, event.Object.Raw = string(kind), object
	return event, defaults, nil
}

// objectDecoder decodes objects of one kind.
type objectDecoder struct {
	runtime.Decoder
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
	skip   skipRule
	head   []byte // the first bytes of an object of the kind: API servers order the fields of custom resources
}

// lenient accepts what API servers accept.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Decode returns the object in data, or an unreadable. Like client-go it leaves the object's own apiVersion and kind
// empty.
func (o objectDecoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil || !bytes.HasPrefix(data, o.head) {
		return o.Decoder.Decode(data, defaults, into)
	}
	object, err := o.scheme.New(o.kind)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, object, lenient); err != nil {
		err = fmt.Errorf("decoding a %s: %w", o.kind.Kind, err)
		if !isUnreadable(err) || !o.skip.skips(func() bool { return holdsQuota(data) }) {
			return nil, nil, err
		}
		is, err := asUnreadable(data, o.kind, err)
		return is, &o.kind, err
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object, &o.kind, nil
}
