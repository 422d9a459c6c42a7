package podspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxListed is how many violations a message names; the rest it counts. People mend
// one after another, and a condition is read on a terminal.
const maxListed = 5

// Violation is why the API server would refuse the pods of a pod set.
type Violation struct {
	// Text names the place, the resource, the value and its bound.
	Text string

	kind     kind
	podSet   int
	place    int
	resource string
}

// kind tells what a LimitRange forbids from what is wrong wherever it is made.
type kind int

const (
	invalid kind = iota
	outOfRange
)

// headline begins the list of the violations of a kind, in the words of the
// reference implementation.
func (k kind) headline() string {
	if k == outOfRange {
		return "resources didn't satisfy LimitRange constraints: "
	}
	return "resources validation failed: "
}

// Message puts violations into one sentence, the same for the same violations
// whatever their order, or "" for none.
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
