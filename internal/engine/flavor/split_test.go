package flavor

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/quota"
)

// split assigns the pod sets so that each one gets flavors.
func (s *shop) split(podSets ...PodSet) Choice {
	s.tree.SetQueue("q", s.cohort, s.quotas)
	form := NewForm(podSets, s.offer, &s.tree)
	return form.Split(form.Full(), Question{Queue: s.tree.Queue("q"), MayPreempt: func(quota.Index, int64) bool { return false }})
}

func TestSplit(t *testing.T) {
	small, large := podSet("small", 1, "cpu", 2), podSet("large", 1, "cpu", 4)
	for name, tc := range map[string]struct {
		shop    *shop
		podSets []PodSet
		want    string
	}{
		"the first pod set leaves the large flavor to the second": {
			shop: newShop(of("big", 4), of("rest", 2)), podSets: []PodSet{small, large},
			want: "fits: small 1 cpu=2 of rest: large 1 cpu=4 of big"},
		"the first pod set takes its preferred flavor if both fit": {
			shop: newShop(of("big", 6), of("rest", 2)), podSets: []PodSet{small, large},
			want: "fits: small 1 cpu=2 of big: large 1 cpu=4 of big"},
		"three in three": {
			shop: newShop(of("a", 4), of("b", 3), of("c", 2)), podSets: []PodSet{small, podSet("middle", 1, "cpu", 3), large},
			want: "fits: small 1 cpu=2 of c: middle 1 cpu=3 of b: large 1 cpu=4 of a"},
		"one that waits for an evicted workload": {
			shop: newShop(of("big", 4).inUse(1), of("rest", 2)).leaving("big", 1), podSets: []PodSet{small, large},
			want: "awaits: small 1 cpu=2 of rest: large 1 cpu=4 of big"},
		"there is none": {
			shop: newShop(of("big", 4).inUse(1), of("rest", 2)), podSets: []PodSet{small, large},
			want: "none, short of 1"},
		"one pod set has nothing to split": {
			shop: newShop(of("big", 4), of("rest", 2)), podSets: []PodSet{large},
			want: "none, short of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			choice := tc.shop.split(tc.podSets...)
			got := line(choice)
			if choice.Mode == NoFit {
				got = fmt.Sprintf("none, short of %d", len(choice.Short))
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSplitIsFoundIfThereIsOne compares the result, and what is said to never fit, with all combinations.
func TestSplitIsFoundIfThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flavors := []stock{of("a", rapid.Int64Range(0, 6).Draw(t, "a")), of("b", rapid.Int64Range(0, 6).Draw(t, "b")), of("c", rapid.Int64Range(0, 6).Draw(t, "c"))}
		var podSets []PodSet
		asks := rapid.SliceOfN(rapid.IntRange(0, 4), 2, 4).Draw(t, "asks")
		for i, ask := range asks {
			podSets = append(podSets, podSet(fmt.Sprint("set-", i), 1, "cpu", ask))
		}
		exists := false
		for n := range 81 { // the flavors of four pod sets, in base 3
			room := []int64{flavors[0].nominal, flavors[1].nominal, flavors[2].nominal}
			fits := true
			for _, ask := range asks {
				room[n%3] -= int64(ask)
				fits = fits && (room[n%3] >= 0 || ask == 0)
				n /= 3
			}
			exists = exists || fits
		}
		shop := newShop(flavors...)
		choice := shop.split(podSets...)
		form := NewForm(podSets, shop.offer, &shop.tree)
		if could := form.CouldFit(form.Full(), shop.tree.Queue("q")); could != exists {
			t.Fatalf("it is said that it could fit: %t, there is a split: %t", could, exists)
		}
		if ok := choice.Mode == Fits; ok != exists {
			t.Fatalf("found %t, there is one: %t", ok, exists)
		}
		given := map[string]int64{}
		for _, a := range choice.Assignments {
			given[a.Flavors["cpu"]] += a.Usage["cpu"]
		}
		for _, f := range flavors {
			if given[f.Name] > f.nominal {
				t.Fatalf("%d of %s, which has %d: %s", given[f.Name], f.Name, f.nominal, line(choice))
			}
		}
	})
}
