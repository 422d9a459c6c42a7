package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// TestMessagesMatchThoseOfTheEngine: the messages must be equal to the byte, because a difference would cost another
// write for each Workload of the queue.
func TestMessagesMatchThoseOfTheEngine(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*twoQueues)
		of     *kueue.Workload
	}{
		"the LocalQueue is held":            {stopping(kueue.Hold, kueue.None), reservedWorkload("a")},
		"the LocalQueue is drained":         {stopping(kueue.HoldAndDrain, kueue.None), admittedWorkload("a")},
		"the ClusterQueue is held":          {stopping(kueue.None, kueue.Hold), reservedWorkload("a")},
		"the ClusterQueue is drained":       {stopping(kueue.None, kueue.HoldAndDrain), admittedWorkload("a")},
		"both are held":                     {stopping(kueue.Hold, kueue.Hold), reservedWorkload("a")},
		"both are drained":                  {stopping(kueue.HoldAndDrain, kueue.HoldAndDrain), admittedWorkload("a")},
		"the LocalQueue is being deleted":   {ending(true, false), reservedWorkload("a")},
		"the ClusterQueue is being deleted": {ending(false, true), reservedWorkload("a")},
		"the LocalQueue is missing":         {func(q *twoQueues) { q.local = nil }, reservedWorkload("a")},
		"the ClusterQueue is missing":       {func(q *twoQueues) { q.cluster = nil }, reservedWorkload("a")},
		"it names no LocalQueue":            {func(q *twoQueues) { q.local = nil }, unnamed(reservedWorkload("a"))},
	} {
		t.Run(name, func(t *testing.T) {
			q := &twoQueues{newLocalQueue("q", "cq"), newClusterQueue("cq", "4")}
			tc.change(q)
			if !workload.IsAdmitted(tc.of) {
				tc.of.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "x", State: kueue.CheckStatePending}}
			}
			step := lifecycle.Next(tc.of, lifecycle.Facts{LocalQueue: q.local, ClusterQueue: q.cluster}, lifecycle.Policy{}, now)
			if step.Status == nil || workload.HoldsQuota(step.Status) {
				t.Fatalf("step = %+v, want one that releases the quota", step.Status)
			}
			reported := meta.FindStatusCondition(step.Status.Status.Conditions, kueue.WorkloadQuotaReserved)
			words, e := newTestTranslator(), engine.New(engine.Options{})
			objects := []client.Object{newFlavor("f"), waitingLike(tc.of)}
			if q.local != nil {
				objects = append(objects, q.local)
			}
			if q.cluster != nil {
				objects = append(objects, q.cluster)
			}
			for _, object := range objects {
				for _, event := range words.changed(object, now) {
					e.Apply(event)
				}
			}
			decided := e.Decide(now)
			if len(decided) != 1 {
				t.Fatalf("engine decisions = %+v, want one", decided)
			}
			why := decided[0].Why
			expectEqual(t, "reason", []string{reported.Reason, reported.Message}, []string{string(why.Code), why.Message()})
		})
	}
}

// unnamed returns the Workload without the name of a queue.
func unnamed(w *kueue.Workload) *kueue.Workload { w.Spec.QueueName = ""; return w }

// waitingLike returns a Workload without quota that names the same queue.
func waitingLike(w *kueue.Workload) *kueue.Workload {
	waiting := newWorkload(w.Name, 1, nil)
	waiting.Spec.QueueName = w.Spec.QueueName
	return waiting
}

// twoQueues are the queues of a Workload, nil if they do not exist.
type twoQueues struct {
	local   *kueue.LocalQueue
	cluster *kueue.ClusterQueue
}

// stopping sets the stop policies of the queues, ending makes them terminating.
func stopping(local, cluster kueue.StopPolicy) func(*twoQueues) {
	return func(q *twoQueues) { q.local.Spec.StopPolicy, q.cluster.Spec.StopPolicy = &local, &cluster }
}

func ending(local, cluster bool) func(*twoQueues) {
	return func(q *twoQueues) {
		if local {
			q.local.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}
		if cluster {
			q.cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}
	}
}
