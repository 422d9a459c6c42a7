// Package pointers visits the elements of slices by pointer. Objects of Kubernetes hold large structs by value: a loop
// with a copy of each would be costly, and could not change them.
package pointers

import "iter"

// To returns pointers to the elements of the list, in their order:
//
//	for container := range pointers.To(pod.Spec.Containers) {
//		container.Image = image
//	}
func To[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// First returns a pointer to the first element for which holds is true, nil if there is none.
func First[T any](list []T, holds func(*T) bool) *T {
	for element := range To(list) {
		if holds(element) {
			return element
		}
	}
	return nil
}

// Count returns for how many elements holds is true.
func Count[T any](list []T, holds func(*T) bool) (n int32) {
	for element := range To(list) {
		if holds(element) {
			n++
		}
	}
	return n
}
