package report

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

// waits returns a decision with a pending reason for the Workload ns/a.
func waits(why string) engine.Decision {
	return engine.Decision{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Why: reason.Inadmissiblef("%s", why)}
}

func TestPendingWriter(t *testing.T) {
	const write = "status Workload a"
	says := func(message string) []string { return []string{"QuotaReserved=False Inadmissible: " + message} }
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	for name, tc := range map[string]struct {
		before func(w *admissiontest.World)
		do     func(p *PendingWriter)
		tries  int
		fails  error
		writes []string
		want   []string
	}{
		"a reason": {
			do: func(p *PendingWriter) { p.Note(waits("no quota")) }, tries: 1, writes: []string{write}, want: says("no quota")},
		"two reasons: only the last is written": {
			do: func(p *PendingWriter) { p.Note(waits("one")); p.Note(waits("two")) }, tries: 2, writes: []string{write},
			want: says("two")},
		"a reason that is known already": {
			before: func(w *admissiontest.World) {
				w.EditStatus(&a, func() { decisions.Wait(&a, reason.Inadmissiblef("no quota"), admissiontest.Now) })
			},
			do: func(p *PendingWriter) { p.Note(waits("no quota")) }, tries: 1, want: says("no quota")},
		"a message that the API truncated": {
			before: func(w *admissiontest.World) {
				w.EditStatus(&a, func() {
					decisions.Wait(&a, reason.Inadmissiblef("%s", strings.Repeat("no", workload.ConditionMessageBytes)),
						admissiontest.Now)
				})
			},
			do: func(p *PendingWriter) { p.Note(waits(strings.Repeat("no", workload.ConditionMessageBytes))) }, tries: 1,
			want: says(workload.Cut(strings.Repeat("no", workload.ConditionMessageBytes), workload.ConditionMessageBytes))},
		"a reason that is withdrawn": {
			do: func(p *PendingWriter) {
				p.Note(waits("no quota"))
				p.Forget(engine.Key{Namespace: "ns", Name: "a"})
			}, tries: 1},
		"a failed write of a reason that is withdrawn": {
			do: func(p *PendingWriter) {
				p.Note(waits("no quota"))
				p.Write(context.Background(), engine.Key{Namespace: "ns", Name: "a"})
				p.Forget(engine.Key{Namespace: "ns", Name: "a"})
			}, tries: 1, fails: apierrors.NewServiceUnavailable("")},
		"an admitted Workload": {
			before: func(w *admissiontest.World) { w.EditStatus(&a, func() { a.Status.Admission = &kueue.Admission{} }) },
			do:     func(p *PendingWriter) { p.Note(waits("no quota")) }, tries: 1},
		"a finished Workload": {
			before: func(w *admissiontest.World) {
				w.EditStatus(&a, func() {
					workload.SetCondition(&a, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonFailed, "",
						admissiontest.Now)
				})
			},
			do: func(p *PendingWriter) { p.Note(waits("no quota")) }, tries: 1},
		"another Workload of the same name": {
			do: func(p *PendingWriter) { d := waits("no quota"); d.UID = "other"; p.Note(d) }, tries: 1},
		"a deleted Workload": {
			before: func(w *admissiontest.World) { w.Remove(&a); w.Put(admissiontest.NewWorkload("b", 1, nil)) },
			do:     func(p *PendingWriter) { p.Note(waits("no quota")) }, tries: 1},
		"a failed write": {
			do: func(p *PendingWriter) { p.Note(waits("no quota")) }, tries: 2, fails: apierrors.NewServiceUnavailable(""),
			writes: []string{write}, want: says("no quota")},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 1, nil))
			if tc.before != nil {
				tc.before(w)
			}
			w.Writes, w.Before = nil, admissiontest.Once(tc.fails)
			p := NewPendingWriter(w, clocktesting.NewFakePassiveClock(admissiontest.Now),
				decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))
			tc.do(p)
			for range tc.tries {
				p.Write(t.Context(), engine.Key{Namespace: "ns", Name: "a"})
			}
			if diff := cmp.Diff(tc.writes, w.Written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if len(p.reasons) != 0 {
				t.Errorf("unwritten reasons: %v, want none", p.reasons)
			}
			if n := p.Queue.NumRequeues(engine.Key{Namespace: "ns", Name: "a"}); n != 0 {
				t.Errorf("%d failures are remembered, want none", n)
			}
			if tc.want != nil {
				if diff := cmp.Diff(tc.want, admissiontest.Conditions(w.Workload("a").Status.Conditions)); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestAReasonNotedDuringAWriteIsNotLost: the worker writes it after that, from the queue.
func TestAReasonNotedDuringAWriteIsNotLost(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 1, nil))
	p := NewPendingWriter(w, clocktesting.NewFakePassiveClock(admissiontest.Now),
		decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))
	var second sync.Once
	w.Before = func(string) error {
		second.Do(func() { p.Note(waits("two")) })
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.Run(ctx) })
	p.Note(waits("one"))
	w.Await("both reasons are written", func() bool { return len(w.Written()) == 2 })
	stop()
	done.Wait()
	if diff := cmp.Diff([]string{"QuotaReserved=False Inadmissible: two"},
		admissiontest.Conditions(w.Workload("a").Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestARecreatedWorkloadGetsItsOwnReason: a Workload is created while the same reason is written for its predecessor.
func TestARecreatedWorkloadGetsItsOwnReason(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 1, nil))
	p := NewPendingWriter(w, clocktesting.NewFakePassiveClock(admissiontest.Now),
		decisions.NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now)))
	later := admissiontest.NewWorkload("a", 1, nil)
	later.UID = "later-uid"
	p.Note(waits("no quota"))
	w.After = func(write string) error {
		if write == "status Workload a" {
			w.After = func(string) error { return nil }
			w.Remove(admissiontest.NewWorkload("a", 1, nil))
			w.Put(later)
			word := waits("no quota")
			word.UID = "later-uid"
			p.Note(word)
		}
		return nil
	}
	for range 2 {
		p.Write(t.Context(), engine.Key{Namespace: "ns", Name: "a"})
	}
	if diff := cmp.Diff([]string{"QuotaReserved=False Inadmissible: no quota"},
		admissiontest.Conditions(w.Workload("a").Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
