package engine

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestExtremeAmountsNeitherOverflowNorPanic: with quotas and requests at the limits of the range, admissions never
// exceed the quota, calculated with big integers.
func TestExtremeAmountsNeitherOverflowNorPanic(t *testing.T) {
	extreme := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, 2, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2,
		1 << 62}), rapid.Int64Range(0, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		e := New(drawOptions(t))
		e.Apply(defaultFlavor)
		there := new(big.Int)
		for _, name := range []string{"p", "q"} {
			nominal := extreme.Draw(t, "quota of "+name)
			there.Add(there, big.NewInt(nominal))
			e.Apply(evicting(queueOf(name, "lab", nominal), preempt.Policy{
				WithinQueue: preempt.LowerPriority,
				Reclaim:     rapid.SampledFrom([]preempt.Rule{preempt.Never, preempt.Any}).Draw(t, name+" reclaims")}))
			e.Apply(localOf(name))
		}
		jobs := map[Key]WorkloadSet{}
		version := int64(1)
		for n := range rapid.IntRange(1, 20).Draw(t, "jobs") {
			pods := rapid.SampledFrom([]int32{0, 1, 2, math.MaxInt32}).Draw(t, "pods")
			w := job(fmt.Sprint("j", n), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "queue"), pods, extreme.Draw(t, "cpu"),
				rapid.Int32().Draw(t, "priority"), n)
			if rapid.Bool().Draw(t, "can start smaller") && pods > 0 {
				w.PodSets[0].MinCount = 1
			}
			w.Version = version
			jobs[w.Key] = w
			e.Apply(w)
			for range 4 {
				for _, d := range decideAll(e, epoch) {
					version++
					w := jobs[d.Key]
					w.Version = version
					switch {
					case d.Admit != nil:
						w.Admission, w.Admitted = d.Admit, true
					case d.Evict != nil: // its pods terminate at once
						w.Admission, w.Admitted = nil, false
					default:
						w.ReportedCode = d.Why.Code
						_ = d.Why.Message()
					}
					jobs[d.Key] = w
					if d.Evict != nil || d.Admit != nil {
						e.Apply(Written{Key: d.Key, UID: d.UID, Version: version})
					}
					e.Apply(w)
				}
			}
			held := new(big.Int)
			for _, w := range jobs {
				e.Explain(w.Key)
				if w.Admission != nil {
					for _, ps := range w.Admission.PodSets {
						held.Add(held, big.NewInt(ps.Usage["cpu"]))
					}
				}
			}
			// A queue without limits lends without limits.
			if u, _ := e.QueueUsage("q"); held.Cmp(there) > 0 && !unbounded(e) {
				t.Fatalf("workloads hold %s of %s; usage of q is %v", held, there, u.Reserved)
			}
		}
	})
}

// unbounded reports whether a queue has quota that means "no limit".
func unbounded(e *Engine) bool {
	for _, q := range e.queues {
		for i := range q.Quotas {
			if q.Quotas[i].Nominal == quota.Unlimited {
				return true
			}
		}
	}
	return e.tree.Cohort("lab").Quota(0) == quota.Unlimited // the sum exceeds the range
}
