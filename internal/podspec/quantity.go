package podspec

import (
	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxDigits is how many digits before the point a quantity may have. It is far
// beyond every amount that is counted, and near enough that sums and products of
// such quantities are cheap: 1e2147483647 is a quantity too, and to add one to it
// takes longer than anybody waits.
const maxDigits = 30

// settled is a quantity as the API server stores it in a pod: what is finer than a
// thousandth is rounded up. A quantity of more than maxDigits is cut to a one with as
// many zeros; the API server has no such bound, and no node has so much.
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

// isSettled reports whether settled surely changes nothing.
func isNormalized(q resource.Quantity) bool {
	if _, whole := q.AsInt64(); whole {
		return true
	}
	return q.Sign() != 0 && digits(q) <= maxDigits && q.RoundUp(resource.Milli)
}

// digits is about how many digits a quantity other than zero has before the point,
// at most one too many, and found without writing it out.
func digits(q resource.Quantity) int64 {
	const bitsPerDigit = 3.3219
	value := q.AsDec()
	return int64(float64(value.UnscaledBig().BitLen())/bitsPerDigit) + 1 - int64(value.Scale())
}

// settledList is a copy of the list with every quantity settled, never nil.
func normalizedList(list corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(list))
	for name, q := range list {
		out[name] = normalized(q)
	}
	return out
}

// fill gives the list what only the other has.
func fill(list, other corev1.ResourceList) {
	for name, q := range other {
		if _, has := list[name]; !has {
			list[name] = normalized(q)
		}
	}
}
