package podspec

import (
	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxDigits is how many integer digits a quantity may have. It is far above all real amounts, and small enough that
// sums and products are cheap: 1e2147483647 is a valid quantity, but adding one to it takes practically forever.
const maxDigits = 30

// normalized returns a quantity as the API server stores it in a pod: rounded up to thousandths. A quantity with more
// than maxDigits digits becomes 10^maxDigits; the API server has no such bound, but no node has so much.
func normalized(q resource.Quantity) resource.Quantity {
	if _, whole := q.AsInt64(); whole {
		return q
	}
	switch {
	case q.Sign() == 0:
		return resource.Quantity{Format: q.Format} // 0e2147483647 is zero, but not cheap
	case digits(q) > maxDigits:
		bound := inf.NewDec(int64(q.Sign()), -maxDigits)
		return *resource.NewDecimalQuantity(*bound, resource.DecimalExponent)
	}
	q.RoundUp(resource.Milli)
	return q
}

// isNormalized reports whether normalized certainly changes nothing.
func isNormalized(q resource.Quantity) bool {
	if _, whole := q.AsInt64(); whole {
		return true
	}
	return q.Sign() != 0 && digits(q) <= maxDigits && q.RoundUp(resource.Milli)
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

// fill adds to the list the entries that only other has.
func fill(list, other corev1.ResourceList) {
	for name, q := range other {
		if _, has := list[name]; !has {
			list[name] = normalized(q)
		}
	}
}
