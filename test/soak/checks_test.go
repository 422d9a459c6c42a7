package soak

import (
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// createCheck creates the AdmissionCheck of some of the round's queues.
func (r *round) createCheck() kueue.AdmissionCheckReference {
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/soak"}}
	r.Shared(check)
	check.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue,
		Reason: "Soak", LastTransitionTime: metav1.Now()}}
	if err := r.Client.Status().Update(r.Context(), check); err != nil {
		r.Fatal(err)
	}
	return kueue.AdmissionCheckReference(check.Name)
}

// answerChecks is the controller of the check: within two seconds it lets most Workloads start, and sends some back to
// their queue, or rejects them.
func (r *round) answerChecks() {
	var lock sync.Mutex
	chance := rand.New(rand.NewPCG(r.Uint64(), 0)) // r's own is not for several goroutines
	harness.Follow(r.World, &kueue.WorkloadList{}, func(event watch.Event) {
		o := event.Object.(*kueue.Workload)
		if event.Type == watch.Deleted || len(o.Status.AdmissionChecks) == 0 ||
			o.Status.AdmissionChecks[0].State != kueue.CheckStatePending {
			return
		}
		state := kueue.CheckStateReady
		switch n := chance.IntN(100); {
		case n < 10:
			state = kueue.CheckStateRetry
		case n < 13:
			state = kueue.CheckStateRejected
		}
		time.AfterFunc(time.Duration(chance.IntN(2000))*time.Millisecond, func() { r.answerCheck(o, state) })
	}, &lock)
}

// answerCheck sets the state of the check, unless the Workload has changed: then there is another event.
func (r *round) answerCheck(o *kueue.Workload, state kueue.CheckState) {
	before := o.DeepCopy()
	check := &o.Status.AdmissionChecks[0]
	check.State, check.Message, check.LastTransitionTime = state, "answered by the soak", metav1.Now()
	err := r.Client.Status().Patch(r.Context(), o,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && r.Context().Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		r.Errorf("the check of %s cannot be %s: %v", o.Name, state, err)
	}
}
