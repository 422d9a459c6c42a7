package podspec

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Counting says which of a pod's requests count against quota, and as which resources. The zero value counts every
// request as itself.
type Counting struct {
	// ExcludePrefixes are name prefixes of resources that do not count.
	ExcludePrefixes []string
	// Transformations maps a resource to the resources that it counts as.
	Transformations map[corev1.ResourceName]Transformation
}

// Transformation counts one resource as others.
type Transformation struct {
	// Replace makes only the outputs count, and not the resource itself.
	Replace bool
	// MultiplyBy is a resource by whose requested quantity the outputs are multiplied; "" for none. If the pod does not
	// request it, the factor is 1.
	MultiplyBy corev1.ResourceName
	// Outputs are what one unit of the resource counts as.
	Outputs corev1.ResourceList
}

// Count returns the requests of a pod that count against quota. Requests are transformed first; then the excluded
// resources are left out, so an excluded resource may be an input or a multiplier. Outputs are not transformed again.
// The result may be the argument itself.
func (c Counting) Count(requests corev1.ResourceList) corev1.ResourceList {
	if !c.Changes() {
		return requests
	}
	out := make(corev1.ResourceList, len(requests))
	for name, q := range requests {
		transformation, ok := c.Transformations[name]
		if !ok || !transformation.Replace {
			add(out, name, q)
		}
		for output, factor := range transformation.Outputs {
			product := times(q, factor)
			if multiplier, requested := requests[transformation.MultiplyBy]; requested {
				product = times(product, multiplier)
			}
			add(out, output, product)
		}
	}
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ resource.Quantity) bool { return c.excludes(name) })
	return out
}

// Changes reports whether Count may change anything.
func (c Counting) Changes() bool { return len(c.ExcludePrefixes)+len(c.Transformations) > 0 }

func (c Counting) excludes(name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.ExcludePrefixes,
		func(prefix string) bool { return strings.HasPrefix(string(name), prefix) })
}

func add(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	sum := normalized(q).DeepCopy() // big quantities share memory between copies
	sum.Add(list[name])
	list[name] = sum
}

// times returns a×b, exact within the bounds of normalized.
func times(a, b resource.Quantity) resource.Quantity {
	a, b = normalized(a), normalized(b)
	product := new(inf.Dec).Mul(a.AsDec(), b.AsDec())
	return normalized(*resource.NewDecimalQuantity(*product, a.Format))
}
