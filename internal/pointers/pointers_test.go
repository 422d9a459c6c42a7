package pointers_test

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/pointers"
)

// TestToVisitsElements checks that elements are visited in order, can be changed, and that a loop may end early.
func TestToVisitsElements(t *testing.T) {
	list := []int{1, 2, 3}
	for n := range pointers.To(list) {
		if *n == 3 {
			break
		}
		*n *= 10
	}
	if !slices.Equal(list, []int{10, 20, 3}) {
		t.Errorf("the list is %v, want its first two elements changed", list)
	}
}

// TestFirstAndCount checks what is found of a list, and that it can be changed in place.
func TestFirstAndCount(t *testing.T) {
	list := []int{1, 2, 4}
	isEven := func(n *int) bool { return *n%2 == 0 }
	if n := pointers.Count(list, isEven); n != 2 {
		t.Errorf("%d numbers are even, want 2", n)
	}
	*pointers.First(list, isEven) = 3
	if !slices.Equal(list, []int{1, 3, 4}) {
		t.Errorf("the list is %v, want its first even number changed", list)
	}
	if pointers.First(list, func(n *int) bool { return *n > 4 }) != nil {
		t.Error("a number that is not there is found")
	}
}
