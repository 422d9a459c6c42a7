package podspec

import (
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// init makes equality.Semantic, by which objects of users are compared in many places, compare their quantities at a
// bounded cost: comparing 1e2147483647 with one takes practically forever.
func init() {
	utilruntime.Must(equality.Semantic.AddFunc(func(a, b resource.Quantity) bool { return Compare(a, b) == 0 }))
}

// maxDigits is how many integer digits a quantity may have. It is far above all real amounts, and small enough that
// sums and products are cheap: 1e2147483647 is a valid quantity, but adding one to it takes practically forever.
const maxDigits = 30

// normalized returns a quantity as the API server stores it in a pod: rounded up to thousandths. A quantity with more
// than maxDigits digits becomes 10^maxDigits; the API server has no bound, but no node has so much.
func normalized(q resource.Quantity) resource.Quantity {
	q = Bounded(q)
	if _, whole := q.AsInt64(); !whole {
		q.RoundUp(resource.Milli)
	}
	return q
}

// Bounded returns a quantity that is cheap to add, to compare and to format. A quantity with more than maxDigits digits
// becomes 10^maxDigits, and a zero that is expensive, such as 0e2147483647, becomes a plain zero. Any other quantity
// stays as it is.
func Bounded(q resource.Quantity) resource.Quantity {
	if q.Sign() == 0 {
		return resource.Quantity{Format: q.Format}
	}
	if _, whole := q.AsInt64(); !whole && digits(q) > maxDigits {
		bound := inf.NewDec(int64(q.Sign()), -maxDigits)
		return *resource.NewDecimalQuantity(*bound, resource.DecimalExponent)
	}
	return q
}

// Compare returns what a.Cmp(b) does, at a bounded cost. Quantities with more than maxDigits digits equal each other.
func Compare(a, b resource.Quantity) int {
	if a == b {
		return 0 // the usual case: the two are spelled alike
	}
	a = Bounded(a)
	return a.Cmp(Bounded(b))
}

// Text formats a quantity of a user at a bounded cost. A quantity with more than maxDigits digits is 10^maxDigits.
func Text(q resource.Quantity) string {
	q = Bounded(q)
	return q.String()
}

// maxText is how many characters Parse accepts.
const maxText = 100

// Parse parses the text of a user as a quantity, at a bounded cost; false if it is none. The text has at most maxText
// characters and three digits in its exponent, as the definitions demand it of quantities: parsing 1e-2147483647 takes
// practically forever.
func Parse(text string) (resource.Quantity, bool) {
	text = strings.TrimSpace(text)
	if at := strings.LastIndexAny(text, "eE"); len(text) > maxText ||
		at >= 0 && len(strings.TrimLeft(text[at+1:], "+-")) > 3 {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// zero is the zero that users write.
var zero = resource.MustParse("0")

// isNormalized reports whether normalized certainly changes nothing.
func isNormalized(q resource.Quantity) bool {
	if q.Sign() == 0 {
		return q == zero // others may not be cheap
	}
	if _, whole := q.AsInt64(); whole {
		return true
	}
	return digits(q) <= maxDigits && q.RoundUp(resource.Milli)
}

// digits returns the number of integer digits of a quantity other than zero, at most one too high, without expanding
// it.
func digits(q resource.Quantity) int64 {
	const bitsPerDigit = 3.3219
	value := q.AsDec()
	return int64(float64(value.UnscaledBig().BitLen())/bitsPerDigit) + 1 - int64(value.Scale())
}

// normalizedList returns a copy of the list with every quantity normalized; never nil.
func normalizedList(list corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(list))
	for name, q := range list {
		out[name] = normalized(q)
	}
	return out
}

// normalizedOrSame returns the list itself if all its quantities are normalized, which is nearly always so, or else a
// copy in which they are.
func normalizedOrSame(list corev1.ResourceList) corev1.ResourceList {
	for _, q := range list {
		if !isNormalized(q) {
			return normalizedList(list)
		}
	}
	return list
}

// fill adds to the list the entries that only other has.
func fill(list, other corev1.ResourceList) {
	for name, q := range other {
		if _, has := list[name]; !has {
			list[name] = normalized(q)
		}
	}
}
