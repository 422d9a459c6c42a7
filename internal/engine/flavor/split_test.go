package flavor

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/quota"
)

// split assigns the pod sets, splitting resources over flavors as needed.
func (t *testQueue) split(podSets ...PodSet) Choice {
	t.tree.SetQueue("q", t.cohort, t.quotas)
	form := NewForm(podSets, t.offer, &t.tree)
	return form.Split(form.Full(),
		Question{Queue: t.tree.Queue("q"), MayPreempt: func(quota.Index, int64) bool { return false }})
}

func TestSplit(t *testing.T) {
	small, large := podSet("small", 1, "cpu", 2), podSet("large", 1, "cpu", 4)
	for name, tc := range map[string]struct {
		offer   *testQueue
		podSets []PodSet
		want    string
	}{
		"the first pod set leaves the large flavor to the second": {
			offer: newTestQueue(of("big", 4), of("rest", 2)), podSets: []PodSet{small, large},
			want: "fits: small 1 cpu=2 of rest: large 1 cpu=4 of big"},
		"the first pod set takes its preferred flavor if both fit": {
			offer: newTestQueue(of("big", 6), of("rest", 2)), podSets: []PodSet{small, large},
			want: "fits: small 1 cpu=2 of big: large 1 cpu=4 of big"},
		"three pod sets in three flavors": {
			offer:   newTestQueue(of("a", 4), of("b", 3), of("c", 2)),
			podSets: []PodSet{small, podSet("middle", 1, "cpu", 3), large},
			want:    "fits: small 1 cpu=2 of c: middle 1 cpu=3 of b: large 1 cpu=4 of a"},
		"a flavor that an evicted workload will release": {
			offer: newTestQueue(of("big", 4).inUse(1), of("rest", 2)).leaving("big", 1), podSets: []PodSet{small, large},
			want: "awaits: small 1 cpu=2 of rest: large 1 cpu=4 of big"},
		"no split exists": {
			offer: newTestQueue(of("big", 4).inUse(1), of("rest", 2)), podSets: []PodSet{small, large},
			want: "none, short of 1"},
		"one pod set": {
			offer: newTestQueue(of("big", 4), of("rest", 2)), podSets: []PodSet{large},
			want: "none, short of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			choice := tc.offer.split(tc.podSets...)
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

// TestSplitIsFoundIfThereIsOne compares the result, and CouldFit, with all combinations.
func TestSplitIsFoundIfThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flavors := []stock{of("a", rapid.Int64Range(0, 6).Draw(t, "a")), of("b", rapid.Int64Range(0, 6).Draw(t, "b")),
			of("c", rapid.Int64Range(0, 6).Draw(t, "c"))}
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
		offer := newTestQueue(flavors...)
		choice := offer.split(podSets...)
		form := NewForm(podSets, offer.offer, &offer.tree)
		if could := form.CouldFit(form.Full(), offer.tree.Queue("q")); could != exists {
			t.Fatalf("CouldFit = %t, a split exists = %t", could, exists)
		}
		if ok := choice.Mode == Fits; ok != exists {
			t.Fatalf("split found = %t, exists = %t", ok, exists)
		}
		given := map[string]int64{}
		for _, a := range choice.Assignments {
			given[a.Flavors["cpu"]] += a.Usage["cpu"]
		}
		for _, f := range flavors {
			if given[f.Name] > f.nominal {
				t.Fatalf("%d of flavor %s assigned, which has %d: %s", given[f.Name], f.Name, f.nominal, line(choice))
			}
		}
	})
}
