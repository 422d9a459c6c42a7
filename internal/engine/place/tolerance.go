package place

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Tolerance says which taints pods tolerate, as the Kubernetes helper for tolerations does, with the operators Gt and
// Lt. Pods may have tens of thousands of tolerations: whatever their number is, the answer for a taint takes some
// look-ups in maps. The helper would compare each of them with each taint, and log an error wherever Gt or Lt meets a
// value that is no number.
type Tolerance struct {
	// exists holds the taints that are tolerated whatever their value is, equal the taints that are tolerated with one
	// value.
	exists map[taintKind]bool
	equal  map[taintOf]bool
	// between holds the taints that are tolerated by their value as a number.
	between map[taintKind]numbers
}

// taintKind are the key and the effect of taints; each is "" for any.
type taintKind struct {
	key    string
	effect corev1.TaintEffect
}

type taintOf struct {
	taintKind
	value string
}

// numbers are the numbers above the lowest bound of Gt, and the numbers below the highest bound of Lt.
type numbers struct{ above, below int64 }

// ToleranceOf returns the tolerance that all the tolerations together give.
func ToleranceOf(lists ...[]corev1.Toleration) Tolerance {
	t := Tolerance{exists: map[taintKind]bool{}, equal: map[taintOf]bool{}, between: map[taintKind]numbers{}}
	for _, list := range lists {
		for i := range list {
			t.add(&list[i])
		}
	}
	return t
}

func (t *Tolerance) add(one *corev1.Toleration) {
	kind := taintKind{one.Key, one.Effect}
	switch one.Operator {
	case "", corev1.TolerationOpEqual:
		t.equal[taintOf{kind, one.Value}] = true
	case corev1.TolerationOpExists:
		t.exists[kind] = true
	case corev1.TolerationOpGt, corev1.TolerationOpLt:
		bound, ok := numberOf(one.Value)
		if !ok {
			return
		}
		tolerated, known := t.between[kind]
		if !known {
			tolerated = numbers{above: math.MaxInt64, below: math.MinInt64}
		}
		if one.Operator == corev1.TolerationOpGt {
			tolerated.above = min(tolerated.above, bound)
		} else {
			tolerated.below = max(tolerated.below, bound)
		}
		t.between[kind] = tolerated
	}
}

// Tolerates reports whether the taint is tolerated.
func (t *Tolerance) Tolerates(taint *corev1.Taint) bool {
	for _, kind := range [...]taintKind{{taint.Key, taint.Effect}, {taint.Key, ""}, {"", taint.Effect}, {"", ""}} {
		if t.exists[kind] || t.equal[taintOf{kind, taint.Value}] {
			return true
		}
		if tolerated, compares := t.between[kind]; compares {
			if n, ok := numberOf(taint.Value); ok && (n > tolerated.above || n < tolerated.below) {
				return true
			}
		}
	}
	return false
}

// numberOf parses a number as Kubernetes does for the operators Gt and Lt.
func numberOf(text string) (int64, bool) {
	if len(content.IsDecimalInteger(text)) > 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
