package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
)

// BenchmarkNextOfNothing measures an update of a Workload that needs no step, as nearly all updates are.
func BenchmarkNextOfNothing(b *testing.B) {
	for name, w := range map[string]builder{
		"waiting":  pending(),
		"running":  admitted().is(kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted),
		"finished": admitted().is(kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			facts, now := open(), began.Add(time.Minute)
			for b.Loop() {
				if lifecycle.Next(w.Workload, facts, policy, now).Writes() {
					b.Fatal("Next returned a step that writes, want none")
				}
			}
		})
	}
}
