package podspec

import (
	"fmt"
	"slices"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checkRange checks requests and limits against the LimitRange's items of the type: of each container, or of the pod as
// a whole. It adds at most one violation for each bound.
func (c *checker) checkRange(at place, limitRange *corev1.LimitRange, of corev1.LimitType,
	requests, limits corev1.ResourceList) {
	for _, item := range limitRange.Spec.Limits {
		if item.Type != of {
			continue
		}
		check := func(bounds corev1.ResourceList, which string, against func(bounded) string) {
			for name, bound := range bounds {
				b := bounded{bound: normalized(bound)}
				b.request, b.requested = requests[name]
				b.limit, b.limited = limits[name]
				if rule := against(b); rule != "" {
					c.add(at, name, outOfRange,
						fmt.Sprintf("%s: Invalid value: [%q]: %s (%s of pod set %q has the request %s and the limit %s, the %s of LimitRange %q is %s)",
							at.path(c.podSet), name, rule, at, c.name, quantity(b.request, b.requested), quantity(b.limit, b.limited), which,
							limitRange.Name, b.bound.String()))
				}
			}
		}
		check(item.Min, "min", bounded.aboveMin)
		check(item.Max, "max", bounded.belowMax)
		check(item.MaxLimitRequestRatio, "maxLimitRequestRatio", bounded.withinRatio)
	}
}

// bounded is the request and limit of one resource, and a bound of a LimitRange on it.
type bounded struct {
	bound              resource.Quantity
	request, limit     resource.Quantity
	requested, limited bool
}

// aboveMin returns the rule that is violated if bound is a minimum, or "". A missing request violates a minimum.
func (b bounded) aboveMin() string {
	switch {
	case !b.requested:
		return "requests must be set where the limitRange has a min"
	case b.request.Cmp(b.bound) < 0:
		return "requests must not be below the limitRange min"
	case b.limited && b.limit.Cmp(b.bound) < 0:
		return "limits must not be below the limitRange min"
	}
	return ""
}

// belowMax returns the rule that is violated if bound is a maximum, or "". A missing limit violates a maximum.
func (b bounded) belowMax() string {
	switch {
	case b.requested && b.request.Cmp(b.bound) > 0:
		return "requests must not be above the limitRange max"
	case !b.limited:
		return "limits must be set where the limitRange has a max"
	case b.limit.Cmp(b.bound) > 0:
		return "limits must not be above the limitRange max"
	}
	return ""
}

// withinRatio returns the rule that is violated if bound is the maximum ratio of limit to request, or "".
func (b bounded) withinRatio() string {
	switch {
	case !b.requested || b.request.IsZero():
		return "requests must be set, and not zero, where the limitRange has a maxLimitRequestRatio"
	case !b.limited || b.limit.IsZero():
		return "limits must be set, and not zero, where the limitRange has a maxLimitRequestRatio"
	}
	greatest := new(inf.Dec).Mul(b.bound.AsDec(), b.request.AsDec())
	if b.limit.AsDec().Cmp(greatest) > 0 {
		return "limits must not be above the limitRange maxLimitRequestRatio times the requests"
	}
	return ""
}

// hasItems reports whether any of the ranges has an item of the type.
func hasItems(limitRanges []*corev1.LimitRange, of corev1.LimitType) bool {
	return slices.ContainsFunc(limitRanges, func(limitRange *corev1.LimitRange) bool {
		return slices.ContainsFunc(limitRange.Spec.Limits, func(item corev1.LimitRangeItem) bool { return item.Type == of })
	})
}
