package reason

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// TestNamesReturnsAllNames: Names returns the names in every list of an explanation, including lists added later.
func TestNamesReturnsAllNames(t *testing.T) {
	var x Explanation
	var named []Name
	fill(reflect.ValueOf(&x).Elem(), &named)
	if len(named) < 5 {
		t.Fatalf("fill set only the names %v", named)
	}
	for _, name := range named {
		if !slices.Contains(x.Names(), name) {
			t.Errorf("Names does not return %s", name)
		}
	}
}

// fill gives every list one element and every Name a unique value, which it adds to named.
func fill(v reflect.Value, named *[]Name) {
	switch {
	case !v.CanSet():
	case v.Type() == reflect.TypeFor[Name]():
		name := Name{Namespace: "ns", Name: fmt.Sprint("w", len(*named))}
		v.Set(reflect.ValueOf(name))
		*named = append(*named, name)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), named)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), named)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), named)
		}
	}
}
