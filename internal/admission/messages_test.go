package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
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
		"the LocalQueue is held":      {stopping(kueue.Hold, kueue.None), admissiontest.ReservedWorkload("a")},
		"the LocalQueue is drained":   {stopping(kueue.HoldAndDrain, kueue.None), admissiontest.AdmittedWorkload("a")},
		"the ClusterQueue is held":    {stopping(kueue.None, kueue.Hold), admissiontest.ReservedWorkload("a")},
		"the ClusterQueue is drained": {stopping(kueue.None, kueue.HoldAndDrain), admissiontest.AdmittedWorkload("a")},
		"both are held":               {stopping(kueue.Hold, kueue.Hold), admissiontest.ReservedWorkload("a")},
		"both are drained": {stopping(kueue.HoldAndDrain, kueue.HoldAndDrain),
			admissiontest.AdmittedWorkload("a")},
		"the LocalQueue is being deleted":   {ending(true, false), admissiontest.ReservedWorkload("a")},
		"the ClusterQueue is being deleted": {ending(false, true), admissiontest.ReservedWorkload("a")},
		"the LocalQueue is missing":         {func(q *twoQueues) { q.local = nil }, admissiontest.ReservedWorkload("a")},
		"the ClusterQueue is missing":       {func(q *twoQueues) { q.cluster = nil }, admissiontest.ReservedWorkload("a")},
		"it names no LocalQueue": {func(q *twoQueues) { q.local = nil },
			unnamed(admissiontest.ReservedWorkload("a"))},
	} {
		t.Run(name, func(t *testing.T) {
			q := &twoQueues{admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewClusterQueue("cq", "4")}
			tc.change(q)
			if !workload.IsAdmitted(tc.of) {
				tc.of.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "x", State: kueue.CheckStatePending}}
			}
			step := lifecycle.Next(tc.of, lifecycle.Facts{LocalQueue: q.local, ClusterQueue: q.cluster}, lifecycle.Policy{},
				admissiontest.Now)
			if step.Status == nil || workload.HoldsQuota(step.Status) {
				t.Fatalf("step = %+v, want one that releases the quota", step.Status)
			}
			reported := meta.FindStatusCondition(step.Status.Status.Conditions, kueue.WorkloadQuotaReserved)
			words, e := newSceneTranslator(), engine.New(engine.Options{})
			objects := []client.Object{admissiontest.NewFlavor("f"), waitingLike(tc.of)}
			if q.local != nil {
				objects = append(objects, q.local)
			}
			if q.cluster != nil {
				objects = append(objects, q.cluster)
			}
			for _, object := range objects {
				for _, event := range words.Changed(object, admissiontest.Now) {
					e.Apply(event)
				}
			}
			decided := e.Decide(admissiontest.Now)
			if len(decided) != 1 {
				t.Fatalf("engine decisions = %+v, want one", decided)
			}
			why := decided[0].Why
			admissiontest.Expect(t, "reason", []string{string(why.Code), why.Message()},
				[]string{reported.Reason, reported.Message})
		})
	}
}

// unnamed returns the Workload without the name of a queue.
func unnamed(w *kueue.Workload) *kueue.Workload { w.Spec.QueueName = ""; return w }

// waitingLike returns a Workload without quota that names the same queue.
func waitingLike(w *kueue.Workload) *kueue.Workload {
	waiting := admissiontest.NewWorkload(w.Name, 1, nil)
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
			q.local.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
		}
		if cluster {
			q.cluster.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
		}
	}
}
