package listwatch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listReader decodes the response to a list request: it passes each object to take, and returns the list's metadata.
// So the list as a whole is never in memory beside the objects that are kept.
type listReader interface {
	read(from io.Reader, take func(runtime.Object) error) (metav1.ListMeta, error)
}

// jsonLists reads JSON lists of a kind, for which newObject returns an empty object.
type jsonLists struct {
	kind         schema.GroupVersionKind
	newObject    func() (runtime.Object, error)
	skip         skipRule
	onUnreadable UnreadableFunc
}

func (j jsonLists) read(from io.Reader, take func(runtime.Object) error) (list metav1.ListMeta, err error) {
	decoder := jsontext.NewDecoder(from, lenient)
	if err := expect(decoder, '{'); err != nil {
		return list, err
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return list, err
		}
		switch name.String() {
		case "items":
			err = j.items(decoder, take)
		case "metadata":
			err = json.UnmarshalDecode(decoder, &list, lenient)
		default:
			err = decoder.SkipValue()
		}
		if err != nil {
			return list, err
		}
	}
	return list, expect(decoder, '}')
}

// items reads the items of a list; null is an empty list.
func (j jsonLists) items(decoder *jsontext.Decoder, take func(runtime.Object) error) error {
	if decoder.PeekKind() == 'n' {
		return decoder.SkipValue()
	}
	if err := expect(decoder, '['); err != nil {
		return err
	}
	for decoder.PeekKind() != ']' {
		object, err := j.newObject()
		if err != nil {
			return err
		}
		bad, err := decodeNext(decoder, object)
		switch {
		case err != nil:
			return err
		case bad != nil && !j.skip.skips(func() bool { return bad.holds }):
			return bad.why
		case bad != nil:
			// metadata comes first in the object, and so was decoded
			j.onUnreadable.report(j.kind, object.(metav1.Object), bad.why)
			continue
		}
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as for objects from a watch
		if err := take(object); err != nil {
			return err
		}
	}
	return expect(decoder, ']')
}

// expect reads a token and fails if it is not of the kind.
func expect(decoder *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := decoder.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("found %s in a list where %s is expected", token.Kind(), kind)
	}
	return err
}

// protobufLists reads lists in Kubernetes' protobuf format: a magic number, then an envelope, in which the list has
// its metadata and its objects. newObject returns an empty object.
type protobufLists struct {
	newObject func() (runtime.Object, error)
}

const protobufMark = "k8s\x00"

// Field numbers of messages.
const (
	listOfEnvelope = 2
	metadataOfList = 1
	itemOfList     = 2
)

func (p protobufLists) read(from io.Reader, take func(runtime.Object) error) (list metav1.ListMeta, err error) {
	reader := bufio.NewReaderSize(from, 32<<10)
	mark := make([]byte, len(protobufMark))
	if _, err := io.ReadFull(reader, mark); err != nil || string(mark) != protobufMark {
		return list, errors.Join(errors.New("a list does not begin with the mark of protobuf"), err)
	}
	envelope := fields{reader, math.MaxInt64}
	for {
		field, size, err := envelope.next()
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return list, err
		case field == listOfEnvelope:
			err = p.items(fields{reader, size}, &list, take)
		default:
			_, err = io.CopyN(io.Discard, reader, size)
		}
		if err != nil {
			return list, err
		}
	}
}

// maxItemBytes bounds the size of an object in bytes: far more than API servers store.
const maxItemBytes = 64 << 20

// items reads the list within the envelope.
func (p protobufLists) items(from fields, list *metav1.ListMeta, take func(runtime.Object) error) error {
	var buffer []byte // may be reused: decoded objects do not share its memory
	for from.left > 0 {
		field, size, err := from.next()
		if err != nil {
			return unexpectedEOF(err)
		}
		if size > maxItemBytes {
			return fmt.Errorf("an object of a list claims to have %d bytes", size)
		}
		buffer = slices.Grow(buffer[:0], int(size))[:size]
		if _, err := io.ReadFull(from.reader, buffer); err != nil {
			return unexpectedEOF(err)
		}
		switch field {
		case metadataOfList:
			err = list.Unmarshal(buffer)
		case itemOfList:
			err = p.item(buffer, take)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p protobufLists) item(data []byte, take func(runtime.Object) error) error {
	object, err := p.newObject()
	if err != nil {
		return err
	}
	message, ok := object.(interface{ Unmarshal([]byte) error })
	if !ok {
		return fmt.Errorf("a %T cannot be read from protobuf", object)
	}
	if err := message.Unmarshal(data); err != nil {
		return err
	}
	return take(object)
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fields iterates over the fields of a protobuf message, of which left bytes are still to be read.
type fields struct {
	reader *bufio.Reader
	left   int64
}

// next returns the number of the next field and the size of its value in bytes, which the caller must read: all
// fields of lists are length-delimited. At the end of the input it returns io.EOF.
func (f *fields) next() (number uint64, size int64, err error) {
	const bytesFollow = 2
	tag, err := binary.ReadUvarint(f.reader)
	if err != nil {
		return 0, 0, err
	}
	if tag&7 != bytesFollow {
		return 0, 0, fmt.Errorf("field %d of a list has the wire type %d", tag>>3, tag&7)
	}
	length, err := binary.ReadUvarint(f.reader)
	if err != nil {
		return 0, 0, unexpectedEOF(err)
	}
	f.left -= int64(sizeOf(tag)+sizeOf(length)) + int64(length)
	if f.left < 0 || length > math.MaxInt32 {
		return 0, 0, fmt.Errorf("field %d of a list has %d bytes, more than are left", tag>>3, length)
	}
	return tag >> 3, int64(length), nil
}

// sizeOf returns the size of a number as a varint.
func sizeOf(number uint64) int { return (bits.Len64(number|1) + 6) / 7 }
