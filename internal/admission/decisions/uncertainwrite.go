package decisions

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// mayHaveTakenEffect reports whether an earlier write of a decision that gives quota may have taken effect and been
// undone since: another workload may have that quota by now. For a workload that was to grow, its admission and
// conditions show whether its quota was changed; other changes do not matter.
func mayHaveTakenEffect(open *openDecision, seen *kueue.Workload) bool {
	before := open.uncertain
	switch {
	case before == nil || before.ResourceVersion == seen.ResourceVersion:
		return false
	case open.Resize != nil && open.Resize.To > open.Resize.From:
		return !equality.Semantic.DeepEqual(before.Status.Admission, seen.Status.Admission) ||
			!sameCondition(before, seen, kueue.WorkloadQuotaReserved) || !sameCondition(before, seen, muster.ResizedCondition)
	}
	return open.Admit != nil
}

func sameCondition(a, b *kueue.Workload, kind string) bool {
	return equality.Semantic.DeepEqual(meta.FindStatusCondition(a.Status.Conditions, kind),
		meta.FindStatusCondition(b.Status.Conditions, kind))
}
