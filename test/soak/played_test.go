package soak

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// logPlayed says how often happened what a round is to play and a seed may miss.
func (r *round) logPlayed() {
	r.Helper()
	grown, without := map[types.UID]bool{}, map[types.UID]bool{}
	last := map[types.UID]*kueue.Workload{}
	for _, e := range r.since(time.Time{}) {
		o, is := e.object.(*kueue.Workload)
		if !is {
			continue
		}
		before := last[o.UID]
		if before != nil && sizes(before) != nil && sizes(o) != nil && podsAsked(o) > podsAsked(before) {
			grown[o.UID] = true
		}
		for i, pods := range sizes(o) {
			if pods == 0 && o.Spec.PodSets[i].Count > 0 {
				without[o.UID] = true
			}
		}
		last[o.UID] = o
	}
	r.Logf("%d jobs: %d asked for more pods while they had quota, %d had quota for no pods of a part",
		len(r.jobs), len(grown), len(without))
}

func podsAsked(o *kueue.Workload) (pods int32) {
	for i := range o.Spec.PodSets {
		pods += o.Spec.PodSets[i].Count
	}
	return pods
}
