package quota

import (
	"cmp"
	"slices"
)

// FlavorResource identifies what quota is counted in: a resource of a flavor.
type FlavorResource struct {
	Flavor   string
	Resource string
}

// Index identifies a FlavorResource within one Tree.
type Index int32

// Amount is an amount of one FlavorResource.
type Amount struct {
	Index Index
	Value int64
}

// Vector is amounts of several FlavorResources, each at most once, sorted by index and without zeros. It is
// immutable.
type Vector []Amount

// VectorOf returns the sum of the amounts, saturating.
func VectorOf(amounts ...Amount) Vector {
	v := slices.Clone(amounts)
	slices.SortStableFunc(v, func(a, b Amount) int { return cmp.Compare(a.Index, b.Index) })
	out := v[:0]
	for _, a := range v {
		if last := len(out) - 1; last >= 0 && out[last].Index == a.Index {
			out[last].Value = Add(out[last].Value, a.Value)
		} else {
			out = append(out, a)
		}
	}
	return Vector(slices.DeleteFunc(out, func(a Amount) bool { return a.Value == 0 }))
}

// Of returns the amount of one FlavorResource, zero if the vector has none.
func (v Vector) Of(i Index) int64 {
	if at, ok := slices.BinarySearchFunc(v, i, func(a Amount, i Index) int { return cmp.Compare(a.Index, i) }); ok {
		return v[at].Value
	}
	return 0
}

// Indices returns the indices of the amounts.
func (v Vector) Indices() []Index {
	out := make([]Index, len(v))
	for at, a := range v {
		out[at] = a.Index
	}
	return out
}

// Union adds to a the indices of b that it lacks.
func Union(a []Index, b ...Index) []Index {
	for _, i := range b {
		if !slices.Contains(a, i) {
			a = append(a, i)
		}
	}
	return a
}

// Times returns the vector multiplied by count, saturating.
func (v Vector) Times(count int32) Vector {
	if count == 0 {
		return nil
	}
	out := slices.Clone(v)
	for i := range out {
		out[i].Value = Times(out[i].Value, count)
	}
	return out
}

// Minus returns the vector minus other, which must not exceed it in anything.
func (v Vector) Minus(other Vector) Vector {
	out := slices.Clone(v)
	for i := range out {
		out[i].Value = Sub(out[i].Value, other.Of(out[i].Index))
	}
	return slices.DeleteFunc(out, func(a Amount) bool { return a.Value == 0 })
}
