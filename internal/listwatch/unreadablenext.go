package listwatch

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// misfit says why an object is unreadable, and whether it may hold quota.
type misfit struct {
	why   error
	holds bool
}

// decodeNext decodes the next object of a list into an empty one. The misfit is set if the object is well-formed but
// does not fit the type: then it is decoded in part, and the decoder is positioned after it all the same.
func decodeNext(decoder *jsontext.Decoder, into runtime.Object) (*misfit, error) {
	depth := decoder.StackDepth()
	err := json.UnmarshalDecode(decoder, into, lenient)
	if err == nil || !isUnreadable(err) {
		return nil, err
	}
	out := &misfit{why: fmt.Errorf("decoding: %w", err)}
	w, is := into.(*kueue.Workload)
	out.holds = is && w.Status.Admission != nil || fieldOf(decoder, depth) == "status"
	for decoder.StackDepth() > depth {
		if err := out.skipNext(decoder, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fieldOf returns the field of the object at this depth that the decoder has reached.
func fieldOf(decoder *jsontext.Decoder, depth int) string {
	path := strings.Split(string(decoder.StackPointer()), "/") // begins with an empty name
	if len(path) <= depth+1 {
		return ""
	}
	return path[depth+1]
}

// skipNext skips the next part of an object that began at this depth. It looks at the status, which may follow what
// does not fit.
func (m *misfit) skipNext(decoder *jsontext.Decoder, depth int) error {
	switch decoder.PeekKind() {
	case '}', ']':
		_, err := decoder.ReadToken()
		return err
	}
	if _, read := decoder.StackIndex(decoder.StackDepth()); decoder.StackDepth() > depth+1 || read%2 != 0 {
		return decoder.SkipValue() // no name of a field of the object itself
	}
	name, err := decoder.ReadToken()
	if err != nil || name.String() != "status" {
		return err
	}
	status, err := decoder.ReadValue()
	m.holds = m.holds || err == nil && statusHoldsQuota(status)
	return err
}
