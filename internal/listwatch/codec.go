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

// codec decodes watches of one kind of custom resource. All that does not look as API servers write it, errors and
// bookmarks among it, goes the way of the codec that it extends.
type codec struct {
	runtime.NegotiatedSerializer
	scheme   *runtime.Scheme
	kind     schema.GroupVersionKind
	passOver bool // what the type in Go of the kind cannot hold
}

// SupportedMediaTypes is JSON alone: custom resources have no protobuf.
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

// DecoderToVersion gives the decoder of the objects of a watch.
func (c codec) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return objectDecoder{
		Decoder:  c.NegotiatedSerializer.DecoderToVersion(d, version),
		scheme:   c.scheme,
		kind:     c.kind,
		passOver: c.passOver,
		head:     fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, c.kind.GroupVersion(), c.kind.Kind),
	}
}

// eventDecoder takes the event of a watch apart by how it begins and ends.
type eventDecoder struct{ runtime.Serializer }

// Decode gives the event its type and, undecoded, its object, which shares data.
func (d eventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return d.Serializer.Decode(data, defaults, into)
	}
	rest, begins := bytes.CutPrefix(data, []byte(`{"type":"`))
	kind, object, follows := bytes.Cut(rest, []byte(`","object":`))
	object, ends := bytes.CutSuffix(bytes.TrimSuffix(object, []byte("\n")), []byte("}"))
	if !begins || !follows || !ends {
		return d.Serializer.Decode(data, defaults, into)
	}
	event.Type, event.Object.Raw = string(kind), object
	return event, defaults, nil
}

// objectDecoder decodes objects of one kind.
type objectDecoder struct {
	runtime.Decoder
	scheme   *runtime.Scheme
	kind     schema.GroupVersionKind
	passOver bool
	head     []byte // what an object of the kind begins with: API servers order the fields of custom resources
}

// lenient takes what API servers take.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Decode gives the object of the kind that data is, or an unreadable one. As client-go does, it leaves out what kind the object says it is.
func (d objectDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil || !bytes.HasPrefix(data, d.head) {
		return d.Decoder.Decode(data, defaults, into)
	}
	object, err := d.scheme.New(d.kind)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, object, lenient); err != nil {
		err = fmt.Errorf("decoding a %s: %w", d.kind.Kind, err)
		if !isUnreadable(err) || !d.passOver {
			return nil, nil, err
		}
		is, err := asUnreadable(data, d.kind, err)
		return is, &d.kind, err
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object, &d.kind, nil
}
