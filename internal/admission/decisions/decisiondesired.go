package decisions

import (
	"cmp"
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// desired returns the Workload as the decision wants it, or nil if there is nothing to write, with the outcome of the
// decision in that case: already there, or superseded.
func (wr *Writer) desired(ctx context.Context, seen *kueue.Workload,
	d engine.Decision) (*kueue.Workload, result, error) {
	switch {
	case d.Evict != nil:
		return wr.evicted(ctx, seen, d.Evict, d.Lost)
	case d.Replace != nil:
		return wr.replaced(ctx, seen, d.Replace)
	case d.Resize != nil:
		return wr.resized(ctx, seen, d.Resize, d.Lost)
	case d.Try != nil:
		return wr.admitted(ctx, seen, d.Try, d.Generation)
	}
	return wr.admitted(ctx, seen, d.Admit, d.Generation)
}

// evicted implements desired for an eviction, where lost are the nodes that the preemptor lost, as in engine.Decision.
func (wr *Writer) evicted(ctx context.Context, seen *kueue.Workload, e *engine.Eviction,
	lost []string) (*kueue.Workload, result, error) {
	switch {
	case !workload.HoldsQuota(seen):
		return nil, superseded, nil
	case workload.IsEvicted(seen):
		return nil, alreadyThere, nil
	}
	if wanted, err := wr.stillWanted(ctx, e.Preemptor, e.PreemptorUID, lost); err != nil || !wanted {
		return nil, superseded, err
	}
	out := seen.DeepCopy()
	evict(out, e, wr.preemptorJobOf(ctx, e.Preemptor), wr.clock.Now())
	return out, unknown, nil
}

// replaced implements desired for a change of places.
func (wr *Writer) replaced(ctx context.Context, seen *kueue.Workload,
	given *engine.Admission) (*kueue.Workload, result, error) {
	if !holdsIn(seen, given.ClusterQueue) {
		return nil, superseded, nil
	}
	places, known, err := wr.places(ctx, given, seen.Status.Admission)
	if err != nil || !known {
		return nil, superseded, err
	}
	out := seen.DeepCopy()
	if !replace(out, places) {
		return nil, alreadyThere, nil
	}
	return out, unknown, nil
}

// admitted implements desired for an admission of the Workload in this generation.
func (wr *Writer) admitted(ctx context.Context, seen *kueue.Workload, given *engine.Admission,
	generation int64) (*kueue.Workload, result, error) {
	switch {
	case workload.HoldsQuota(seen):
		// An earlier attempt took effect, or another writer was faster. The watch will tell the engine what the
		// Workload holds; until then the assumption stands in for it.
		return nil, alreadyThere, nil
	case seen.Generation != generation || !translate.MayBeAdmitted(seen):
		return nil, superseded, nil
	}
	places, known, err := wr.places(ctx, given, nil)
	if err != nil || !known {
		return nil, superseded, err
	}
	out := new(*seen)
	out.Status = *seen.Status.DeepCopy() // an admission changes nothing else
	admit(out, given, places, wr.clock.Now())
	if open, err := wr.stillOpen(ctx, out, given); err != nil || !open {
		return nil, superseded, err
	}
	return out, unknown, nil
}

// holdsIn reports whether the Workload holds quota of the ClusterQueue and is not evicted.
func holdsIn(w *kueue.Workload, clusterQueue string) bool {
	return workload.HoldsQuota(w) && !workload.IsEvicted(w) && string(w.Status.Admission.ClusterQueue) == clusterQueue
}

// nameOf returns the name by which users know a Workload: its controlling job, such as ns/trainingjob/tune, or else
// the Workload itself; "" for the zero key.
func (wr *Writer) nameOf(ctx context.Context, key engine.Key) string {
	if key == (engine.Key{}) {
		return ""
	}
	return key.Namespace + "/" + cmp.Or(wr.preemptorJobOf(ctx, key).title, "workload/"+key.Name)
}

// places returns the places of an admission in the form of the API, where before is the one that it replaces. known is
// false if an object that they refer to is gone.
func (wr *Writer) places(ctx context.Context, given *engine.Admission,
	before *kueue.Admission) (_ map[string]*kueue.TopologyAssignment, known bool, _ error) {
	return placeReader{Reader: wr.client}.assignments(ctx, given, before)
}

// preemptorJobOf returns the job of the Workload; one without a job stands for itself.
func (wr *Writer) preemptorJobOf(ctx context.Context, key engine.Key) preemptorJob {
	var w kueue.Workload
	if err := wr.client.Get(ctx, client.ObjectKey(key), &w, client.UnsafeDisableDeepCopy); err != nil {
		return preemptorJob{} // it only informs users, and the preemptor may be gone by now
	}
	by := preemptorJob{uid: w.Labels[kueue.JobUIDLabel], title: "workload/" + w.Name}
	if owner := metav1.GetControllerOf(&w); owner != nil {
		by.title = strings.ToLower(owner.Kind) + "/" + owner.Name
	}
	return by
}
