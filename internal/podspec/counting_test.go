package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestCount(t *testing.T) {
	transform := func(input string, transformation Transformation) map[corev1.ResourceName]Transformation {
		return map[corev1.ResourceName]Transformation{corev1.ResourceName(input): transformation}
	}
	for name, tc := range map[string]struct {
		counting Counting
		requests corev1.ResourceList
		want     corev1.ResourceList
	}{
		"all, by themselves": {Counting{}, amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "1", "memory", "1Gi")},
		"not those with an excluded prefix": {Counting{ExcludePrefixes: []string{"example.com/", "mem"}},
			amounts("cpu", "1", "memory", "1Gi", "example.com/nic", "1"), amounts("cpu", "1")},
		"the input beside the outputs, where it is retained": {Counting{Transformations: transform("example.com/slice", Transformation{Outputs: amounts("example.com/memory", "5Gi", "example.com/slices", "2")})},
			amounts("example.com/slice", "3"), amounts("example.com/slice", "3", "example.com/memory", "15Gi", "example.com/slices", "6")},
		"the outputs alone, where it is replaced": {Counting{Transformations: transform("example.com/slice", Transformation{Replace: true, Outputs: amounts("example.com/memory", "5Gi")})},
			amounts("cpu", "1", "example.com/slice", "3"), amounts("cpu", "1", "example.com/memory", "15Gi")},
		"nothing, where it is replaced by nothing": {Counting{Transformations: transform("example.com/slice", Transformation{Replace: true})},
			amounts("cpu", "1", "example.com/slice", "3"), amounts("cpu", "1")},
		"an output adds to what is requested of it": {Counting{Transformations: transform("cpu", Transformation{Replace: true, Outputs: amounts("memory", "1Gi")})},
			amounts("cpu", "2", "memory", "1Gi"), amounts("memory", "3Gi")},
		"an output is not transformed again": {Counting{Transformations: map[corev1.ResourceName]Transformation{
			"a": {Replace: true, Outputs: amounts("b", "1")}, "b": {Replace: true, Outputs: amounts("c", "1")}}},
			amounts("a", "1"), amounts("b", "1")},
		"parts of a unit count as parts": {Counting{Transformations: transform("cpu", Transformation{Replace: true, Outputs: amounts("credits", "3")})},
			amounts("cpu", "500m"), amounts("credits", "1500m")},
		"outputs are multiplied, the retained input is not": {Counting{Transformations: transform("example.com/gpumem", Transformation{MultiplyBy: "example.com/gpu", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/gpumem", "1024", "example.com/gpu", "2"), amounts("example.com/gpumem", "1024", "example.com/gpu", "2", "example.com/total", "2048")},
		"what is excluded still multiplies": {Counting{ExcludePrefixes: []string{"example.com/gpu-count"}, Transformations: transform("example.com/cores", Transformation{Replace: true, MultiplyBy: "example.com/gpu-count", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/cores", "20", "example.com/gpu-count", "2"), amounts("example.com/total", "40")},
		"a multiplier that is not requested is one": {Counting{Transformations: transform("example.com/gpumem", Transformation{Replace: true, MultiplyBy: "example.com/gpu", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/gpumem", "1024"), amounts("example.com/total", "1024")},
		"a multiplier of zero makes nothing": {Counting{Transformations: transform("example.com/gpumem", Transformation{Replace: true, MultiplyBy: "example.com/gpu", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/gpumem", "1024", "example.com/gpu", "0"), amounts("example.com/gpu", "0", "example.com/total", "0")},
		"what is excluded is not transformed": {Counting{ExcludePrefixes: []string{"a"}, Transformations: transform("a", Transformation{Outputs: amounts("b", "1")})},
			amounts("a", "1"), corev1.ResourceList{}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.requests.DeepCopy()
			if diff := cmp.Diff(tc.want, tc.counting.Count(tc.requests)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.requests); diff != "" {
				t.Errorf("the requests given were changed:\n%s", diff)
			}
		})
	}
}
