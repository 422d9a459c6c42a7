package managedqueues

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
)

// rootQueue is how Volcano's manifests name the parent of a top-level Queue.
const rootQueue = "root"

// volcanoTree is how Volcano Queues are nested. A Queue that others name as their parent has a Cohort, in which these
// Queues are, and its own ClusterQueue beside them. The Cohort is in that of its parent; the top ones are in the cohort
// volcano.
//
// With a Queue lab of capability 10 and two Queues in it that deserve 4 each, the Cohort volcano-lab may borrow 2
// beyond the 8 that its ClusterQueues own: all of lab has 10 at most.
type volcanoTree struct {
	// parents and children have the Queues of which the parent has an effect.
	parents  map[string]*scheduling.Queue
	children map[string][]*scheduling.Queue
	// ignored says why the parent of a Queue has no effect, by name.
	ignored map[string]string
	// shares has what a Queue and all below it own, by name.
	shares map[string]corev1.ResourceList
}

// nest returns the tree of the Queues. served has the Queues for which a ClusterQueue was made: only these can be
// parents.
func nest(queues, served map[string]*scheduling.Queue) *volcanoTree {
	t := &volcanoTree{parents: map[string]*scheduling.Queue{}, children: map[string][]*scheduling.Queue{},
		ignored: map[string]string{}, shares: map[string]corev1.ResourceList{}}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		switch parent := q.Spec.Parent; {
		case parent == "" || parent == rootQueue:
		case queues[parent] == nil:
			t.ignored[name] = fmt.Sprintf("parent, because there is no Queue %s", parent)
		case served[parent] == nil:
			t.ignored[name] = fmt.Sprintf("parent, because another ClusterQueue %s serves in place of that Queue", parent)
		case len(cohortName(parent)) > validation.DNS1123SubdomainMaxLength:
			t.ignored[name] = "parent, because its name is too long for a Cohort"
		case isBelowItself(name, queues):
			t.ignored[name] = "parent, because the Queue is below itself then"
		default:
			t.parents[name] = queues[parent]
			t.children[parent] = append(t.children[parent], q)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if t.parents[name] == nil {
			t.share(queues[name], t.own(queues[name]))
		}
	}
	return t
}

// isBelowItself reports whether the parents of the Queue lead back to it.
func isBelowItself(name string, queues map[string]*scheduling.Queue) bool {
	at := name
	for range queues {
		q := queues[at]
		if q == nil {
			return false
		}
		if at = q.Spec.Parent; at == name {
			return true
		}
	}
	return false
}

// cohortOf returns the name of the cohort of the Queue's ClusterQueue.
func (v *volcanoTree) cohortOf(q *scheduling.Queue) string {
	switch parent := v.parents[q.Name]; {
	case len(v.children[q.Name]) > 0:
		return cohortName(q.Name)
	case parent != nil:
		return cohortName(parent.Name)
	}
	return volcanoCohort
}

// cohortName returns the name of the Cohort of a Queue with others below it.
func cohortName(queue string) string { return volcanoCohort + "-" + queue }

// own returns what the Queue and all Queues below it own together: what the Queue deserves or is guaranteed, or the sum
// of what its children own if the sum is more; at most its capability.
func (v *volcanoTree) own(q *scheduling.Queue) corev1.ResourceList {
	own := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{q.Spec.Deserved, q.Spec.Guarantee.Resource} {
		for name := range list {
			own[name] = nominalOf(q, name)
		}
	}
	for name, sum := range v.ownOfChildren(q) {
		if before := own[name]; sum.Cmp(before) > 0 {
			own[name] = atMost(sum, q.Spec.Capability, name)
		}
	}
	return own
}

func (v *volcanoTree) ownOfChildren(q *scheduling.Queue) corev1.ResourceList {
	sums := corev1.ResourceList{}
	for _, child := range v.children[q.Name] {
		for name, amount := range v.own(child) {
			sum := sums[name]
			sum.Add(amount)
			sums[name] = sum
		}
	}
	return sums
}

// share notes what the Queue and all Queues below it own together. Where this is less than the sum of what its children
// would own, each child has its part.
func (v *volcanoTree) share(q *scheduling.Queue, all corev1.ResourceList) {
	v.shares[q.Name] = all
	wanted := v.ownOfChildren(q)
	for _, child := range v.children[q.Name] {
		own := v.own(child)
		for name, amount := range own {
			own[name] = partOf(amount, all[name], wanted[name], name)
		}
		v.share(child, own)
	}
}

// partOf returns the amount, or its part of all where less is there than is wanted.
func partOf(amount, all, wanted resource.Quantity, name corev1.ResourceName) resource.Quantity {
	if all.Cmp(wanted) >= 0 {
		return amount
	}
	units := proportion(quota.FromQuantity(name, amount), quota.FromQuantity(name, all), quota.FromQuantity(name, wanted))
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(units, amount.Format)
	}
	return *resource.NewQuantity(units, amount.Format)
}

// proportion returns n*part/whole, where n and part count as no less than zero and no more than the whole.
func proportion(n, part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	n, part = min(max(0, n), whole), min(max(0, part), whole)
	high, low := bits.Mul64(uint64(n), uint64(part))
	out, _ := bits.Div64(high, low, uint64(whole))
	return int64(out)
}

// atMost returns the amount, or the capability of the resource if that is less.
func atMost(amount resource.Quantity, capability corev1.ResourceList, name corev1.ResourceName) resource.Quantity {
	if most, limited := capability[name]; limited && most.Cmp(amount) < 0 {
		return most
	}
	return amount
}

// nominal returns the nominal quota of the Queue's ClusterQueue. The ClusterQueue of a parent has none: what a parent
// owns is shared with its children.
func (v *volcanoTree) nominal(q *scheduling.Queue) corev1.ResourceList {
	if len(v.children[q.Name]) > 0 {
		return nil
	}
	return v.shares[q.Name]
}

// cohorts returns the Cohorts of the Queues with others below them.
func (v *volcanoTree) cohorts(queues map[string]*scheduling.Queue) map[string]*kueue.Cohort {
	out := map[string]*kueue.Cohort{}
	for name := range v.children {
		out[cohortName(name)] = v.cohort(queues[name])
	}
	return out
}

// cohort returns the Cohort of the Queue: the quota that the Queue owns and its children do not own, up to its
// capability.
func (v *volcanoTree) cohort(q *scheduling.Queue) *kueue.Cohort {
	out := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{
		Name: cohortName(q.Name), Labels: map[string]string{muster.FollowsNodesLabel: "true"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(q, volcanoKind)}}}
	out.Spec.ParentName = volcanoCohort
	if parent := v.parents[q.Name]; parent != nil {
		out.Spec.ParentName = kueue.CohortReference(cohortName(parent.Name))
	}
	out.Spec.FairSharing = weightOf(q)
	quota := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{v.shares[q.Name], q.Spec.Capability} {
		for name := range list {
			quota[name] = v.remainder(q, name)
		}
	}
	if len(quota) == 0 {
		return out
	}
	group := groupOf(quota)
	for i := range group.Flavors[0].Resources {
		v.limit(&group.Flavors[0].Resources[i], q)
	}
	out.Spec.ResourceGroups = []kueue.ResourceGroup{group}
	return out
}

// remainder returns what the Queue owns beyond what its children own.
func (v *volcanoTree) remainder(q *scheduling.Queue, name corev1.ResourceName) resource.Quantity {
	left := v.shares[q.Name][name].DeepCopy()
	for _, child := range v.children[q.Name] {
		left.Sub(v.shares[child.Name][name])
	}
	return positive(left)
}

// limit sets how much of a resource the Cohort may borrow, and how much of what is below it may be lent: not what the
// Queue is guaranteed beyond the guarantees below it, which are not lent to the Cohort in the first place.
func (v *volcanoTree) limit(quota *kueue.ResourceQuota, q *scheduling.Queue) {
	owned := v.shares[q.Name][quota.Name]
	if most, limited := q.Spec.Capability[quota.Name]; limited {
		most = most.DeepCopy()
		most.Sub(owned)
		quota.BorrowingLimit = ptr.To(canonical(positive(most)))
	}
	guaranteed, kept := q.Spec.Guarantee.Resource[quota.Name]
	if !kept {
		return
	}
	guaranteed, lent := guaranteed.DeepCopy(), owned.DeepCopy()
	for _, child := range v.children[q.Name] {
		below := child.Spec.Guarantee.Resource[quota.Name]
		guaranteed.Sub(below)
		lent.Sub(below)
	}
	lent.Sub(positive(guaranteed))
	quota.LendingLimit = ptr.To(canonical(positive(lent)))
}

// positive returns the quantity, or zero if it is negative.
func positive(q resource.Quantity) resource.Quantity {
	if q.Sign() < 0 {
		return resource.Quantity{}
	}
	return q
}
