package admission

import (
	"k8s.io/utils/ptr"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/order"
)

// Rank is the Workload's place among those that wait in its queue, where usage does not order them, with that
// configuration, a complete one. considered tells that nothing about the Workload itself, such as a back-off or a gate,
// keeps it out of the line.
func Rank(w *kueue.Workload, cfg *config.Configuration) (rank order.Rank, considered bool) {
	return order.Rank{
		Priority: ptr.Deref(w.Spec.Priority, 0), First: lostNodes(w), Since: queuePolicyOf(cfg).queuedAt(w), Key: keyOf(w),
	}, mayBeAdmitted(w)
}
