package decisions

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// resized implements desired for a change of size of an admitted Workload, where lost are the nodes that the Workload
// lost for which it shrinks, as in engine.Decision.
func (wr *Writer) resized(ctx context.Context, seen *kueue.Workload, r *engine.Resize,
	lost []string) (*kueue.Workload, result, error) {
	if !holdsIn(seen, r.Admission.ClusterQueue) {
		return nil, superseded, nil
	}
	switch sizeOf(seen, r.PodSet) {
	case r.To:
		return nil, alreadyThere, nil // by an earlier try
	case r.From:
	default:
		return nil, superseded, nil
	}
	if most := wantedOf(seen, r.PodSet); r.Unwanted && r.To != most || r.To > r.From && r.To > most {
		return nil, superseded, nil // the job asks for another size by now
	}
	wanted, err := wr.stillWanted(ctx, r.For, "", lost)
	if wanted && r.To > r.From {
		wanted, err = wr.mayStillGrow(ctx, seen, r.Admission.ClusterQueue)
	}
	if err != nil || !wanted {
		return nil, superseded, err
	}
	places, known, err := wr.places(ctx, r.Admission, seen.Status.Admission)
	if err != nil || !known {
		return nil, superseded, err
	}
	out := seen.DeepCopy()
	resize(out, r, wr.nameOf(ctx, r.For), places, wr.clock.Now())
	return out, unknown, nil
}

// sizeOf returns the number of admitted pods of the pod set, -1 if the admission does not give one.
func sizeOf(w *kueue.Workload, podSet string) int32 {
	for _, a := range w.Status.Admission.PodSetAssignments {
		if string(a.Name) == podSet {
			return ptr.Deref(a.Count, -1)
		}
	}
	return -1
}

// wantedOf returns how many pods of the pod set the job asks for now, 0 if there is no such pod set.
func wantedOf(w *kueue.Workload, podSet string) int32 {
	for i := range w.Spec.PodSets {
		if ps := &w.Spec.PodSets[i]; string(ps.Name) == podSet {
			return workload.Wanted(w, ps)
		}
	}
	return 0
}

// resize changes the size of a pod set in the Workload's status. What terminating pods beyond the new size still use
// is kept in resourceRequests and held until workload.FinishShrink removes it. by is the user-visible name of the
// workload that the resize is for, "" if there is none.
func resize(w *kueue.Workload, r *engine.Resize, by string,
	places map[string]*kueue.TopologyAssignment, now time.Time) {
	at := slices.IndexFunc(r.Admission.PodSets, func(a engine.Assignment) bool { return a.PodSet == r.PodSet })
	given := &r.Admission.PodSets[at]
	for i := range w.Status.Admission.PodSetAssignments {
		a := &w.Status.Admission.PodSetAssignments[i]
		if string(a.Name) != r.PodSet {
			continue
		}
		uses := corev1.ResourceList{}
		a.Count, a.ResourceUsage = ptr.To(given.Count), corev1.ResourceList{}
		for resource, amount := range given.Usage {
			name := corev1.ResourceName(resource)
			a.ResourceUsage[name] = quota.ToQuantity(name, amount)
			uses[name] = quota.ToQuantity(name, quota.Add(amount, given.Surplus[resource]))
		}
		if moved := places[r.PodSet]; moved != nil {
			a.TopologyAssignment = moved
		}
		w.Status.ResourceRequests = slices.DeleteFunc(w.Status.ResourceRequests,
			func(p kueue.PodSetRequest) bool { return p.Name == a.Name })
		if given.Surplus != nil {
			w.Status.ResourceRequests = append(w.Status.ResourceRequests, kueue.PodSetRequest{Name: a.Name, Resources: uses})
		}
	}
	reason, message := muster.GrownReason, fmt.Sprintf("pod set %s from %d to %d pods", r.PodSet, r.From, r.To)
	if r.To < r.From {
		reason = muster.ShrunkReason
	}
	if by != "" {
		message += " for " + by
	}
	if r.Unwanted {
		message += " as its job has ended or asks for no more"
	}
	if r.Detail != "" {
		message += ": " + r.Detail
	}
	meta.RemoveStatusCondition(&w.Status.Conditions, muster.ResizedCondition) // the new one gets its own transition time
	workload.SetCondition(w, muster.ResizedCondition, metav1.ConditionTrue, reason, message, now)
}
