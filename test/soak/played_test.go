package soak

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	operatorjobs "github.com/musterhq/muster/internal/jobs"
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
	again := map[string]bool{}
	for _, event := range r.list(&corev1.EventList{}).(*corev1.EventList).Items {
		if event.Reason == operatorjobs.RestartsWholeReason {
			again[event.InvolvedObject.Name] = true
		}
	}
	r.Logf("%d jobs: %d asked for more pods while they had quota, %d had quota for no pods of a part, %d ran again",
		len(r.jobs), len(grown), len(without), len(again))
}

func podsAsked(o *kueue.Workload) (pods int32) {
	for i := range o.Spec.PodSets {
		pods += o.Spec.PodSets[i].Count
	}
	return pods
}
