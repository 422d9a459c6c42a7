package podspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxListed is how many violations a message lists; the others are only counted. Users fix them one at a time, and read
// the condition on a terminal.
const maxListed = 5

// Violation is a reason why the API server would refuse the pods of a pod set.
type Violation struct {
	// Text names the path, the resource, the value and its bound.
	Text string

	kind     kind
	podSet   int
	place    int
	resource string
}

// kind tells violations of a LimitRange from violations in any namespace.
type kind int

const (
	invalid kind = iota
	outOfRange
)

// headline returns the text before the violations of a kind; it uses Kueue's words.
func (k kind) headline() string {
	if k == outOfRange {
		return "resources didn't satisfy LimitRange constraints: "
	}
	return "resources validation failed: "
}

// Message joins violations into one message, "" for none. It does not depend on their order.
func Message(violations []Violation) string {
	if len(violations) == 0 {
		return ""
	}
	violations = slices.Clone(violations)
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.podSet, b.podSet),
			cmp.Compare(a.place, b.place), cmp.Compare(a.resource, b.resource), cmp.Compare(a.Text, b.Text))
	})
	var out strings.Builder
	for i, v := range violations[:min(len(violations), maxListed)] {
		switch {
		case i > 0 && v.kind == violations[i-1].kind:
			out.WriteString("; ")
		case i > 0:
			out.WriteString(". ")
			fallthrough
		default:
			out.WriteString(v.kind.headline())
		}
		out.WriteString(v.Text)
	}
	if more := len(violations) - maxListed; more > 0 {
		fmt.Fprintf(&out, "; and %d more", more)
	}
	return out.String()
}
