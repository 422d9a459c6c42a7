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
		"no configuration": {Counting{}, amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "1", "memory", "1Gi")},
		"excluded prefixes": {Counting{ExcludePrefixes: []string{"example.com/", "mem"}},
			amounts("cpu", "1", "memory", "1Gi", "example.com/nic", "1"), amounts("cpu", "1")},
		"a retained input and its outputs": {Counting{Transformations: transform("example.com/slice",
			Transformation{Outputs: amounts("example.com/memory", "5Gi", "example.com/slices", "2")})},
			amounts("example.com/slice", "3"),
			amounts("example.com/slice", "3", "example.com/memory", "15Gi", "example.com/slices", "6")},
		"a replaced input": {Counting{Transformations: transform("example.com/slice",
			Transformation{Replace: true, Outputs: amounts("example.com/memory", "5Gi")})},
			amounts("cpu", "1", "example.com/slice", "3"), amounts("cpu", "1", "example.com/memory", "15Gi")},
		"an input replaced by nothing": {Counting{Transformations: transform("example.com/slice",
			Transformation{Replace: true})},
			amounts("cpu", "1", "example.com/slice", "3"), amounts("cpu", "1")},
		"an output that is also requested": {Counting{Transformations: transform("cpu",
			Transformation{Replace: true, Outputs: amounts("memory", "1Gi")})},
			amounts("cpu", "2", "memory", "1Gi"), amounts("memory", "3Gi")},
		"an output that is also an input": {Counting{Transformations: map[corev1.ResourceName]Transformation{
			"a": {Replace: true, Outputs: amounts("b", "1")}, "b": {Replace: true, Outputs: amounts("c", "1")}}},
			amounts("a", "1"), amounts("b", "1")},
		"fractions of a unit": {Counting{Transformations: transform("cpu",
			Transformation{Replace: true, Outputs: amounts("credits", "3")})},
			amounts("cpu", "500m"), amounts("credits", "1500m")},
		"a multiplier and a retained input": {Counting{Transformations: transform("example.com/gpumem",
			Transformation{MultiplyBy: "example.com/gpu", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/gpumem", "1024", "example.com/gpu", "2"),
			amounts("example.com/gpumem", "1024", "example.com/gpu", "2", "example.com/total", "2048")},
		"an excluded multiplier": {Counting{ExcludePrefixes: []string{"example.com/gpu-count"},
			Transformations: transform("example.com/cores",
				Transformation{Replace: true, MultiplyBy: "example.com/gpu-count", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/cores", "20", "example.com/gpu-count", "2"), amounts("example.com/total", "40")},
		"a multiplier that is not requested": {Counting{Transformations: transform("example.com/gpumem",
			Transformation{Replace: true, MultiplyBy: "example.com/gpu", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/gpumem", "1024"), amounts("example.com/total", "1024")},
		"a multiplier of zero": {Counting{Transformations: transform("example.com/gpumem",
			Transformation{Replace: true, MultiplyBy: "example.com/gpu", Outputs: amounts("example.com/total", "1")})},
			amounts("example.com/gpumem", "1024", "example.com/gpu", "0"),
			amounts("example.com/gpu", "0", "example.com/total", "0")},
		"an excluded input that is replaced": {Counting{ExcludePrefixes: []string{"example.com/excl"},
			Transformations: transform("example.com/excl-in",
				Transformation{Replace: true, Outputs: amounts("example.com/credits", "10")})},
			amounts("cpu", "1", "example.com/excl-in", "3"), amounts("cpu", "1", "example.com/credits", "30")},
		"an excluded input that is retained": {Counting{ExcludePrefixes: []string{"a"},
			Transformations: transform("a", Transformation{Outputs: amounts("b", "1")})},
			amounts("a", "1"), amounts("b", "1")},
		"an excluded input with an excluded multiplier": {Counting{ExcludePrefixes: []string{"a"},
			Transformations: transform("a", Transformation{MultiplyBy: "a2", Outputs: amounts("b", "2")})},
			amounts("a", "3", "a2", "4"), amounts("b", "24")},
		"an excluded output": {Counting{ExcludePrefixes: []string{"b"},
			Transformations: transform("a", Transformation{Replace: true, Outputs: amounts("b", "1", "c", "1")})},
			amounts("a", "2"), amounts("c", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.requests.DeepCopy()
			if diff := cmp.Diff(tc.want, tc.counting.Count(tc.requests)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.requests); diff != "" {
				t.Errorf("Count changed the given requests:\n%s", diff)
			}
		})
	}
}
