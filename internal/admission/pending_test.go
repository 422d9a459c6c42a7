package admission

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
		before func(w *world)
		do     func(p *pendingWriter)
		tries  int
		fails  error
		writes []string
		want   []string
	}{
		"a reason": {
			do: func(p *pendingWriter) { p.note(waits("no quota")) }, tries: 1, writes: []string{write}, want: says("no quota")},
		"two reasons: only the last is written": {
			do: func(p *pendingWriter) { p.note(waits("one")); p.note(waits("two")) }, tries: 2, writes: []string{write}, want: says("two")},
		"a reason that is known already": {
			before: func(w *world) { w.editStatus(&a, func() { wait(&a, reason.Inadmissiblef("no quota"), now) }) },
			do:     func(p *pendingWriter) { p.note(waits("no quota")) }, tries: 1, want: says("no quota")},
		"a message that the API truncated": {
			before: func(w *world) {
				w.editStatus(&a, func() {
					wait(&a, reason.Inadmissiblef("%s", strings.Repeat("no", workload.ConditionMessageBytes)), now)
				})
			},
			do: func(p *pendingWriter) { p.note(waits(strings.Repeat("no", workload.ConditionMessageBytes))) }, tries: 1,
			want: says(workload.Cut(strings.Repeat("no", workload.ConditionMessageBytes), workload.ConditionMessageBytes))},
		"a reason that is withdrawn": {
			do: func(p *pendingWriter) { p.note(waits("no quota")); p.forget(engine.Key{Namespace: "ns", Name: "a"}) }, tries: 1},
		"a failed write of a reason that is withdrawn": {
			do: func(p *pendingWriter) {
				p.note(waits("no quota"))
				p.write(context.Background(), engine.Key{Namespace: "ns", Name: "a"})
				p.forget(engine.Key{Namespace: "ns", Name: "a"})
			}, tries: 1, fails: apierrors.NewServiceUnavailable("")},
		"an admitted Workload": {
			before: func(w *world) { w.editStatus(&a, func() { a.Status.Admission = &kueue.Admission{} }) },
			do:     func(p *pendingWriter) { p.note(waits("no quota")) }, tries: 1},
		"a finished Workload": {
			before: func(w *world) {
				w.editStatus(&a, func() {
					workload.SetCondition(&a, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonFailed, "", now)
				})
			},
			do: func(p *pendingWriter) { p.note(waits("no quota")) }, tries: 1},
		"another Workload of the same name": {
			do: func(p *pendingWriter) { d := waits("no quota"); d.UID = "other"; p.note(d) }, tries: 1},
		"a deleted Workload": {
			before: func(w *world) { w.remove(&a); w.put(newWorkload("b", 1, nil)) },
			do:     func(p *pendingWriter) { p.note(waits("no quota")) }, tries: 1},
		"a failed write": {
			do: func(p *pendingWriter) { p.note(waits("no quota")) }, tries: 2, fails: apierrors.NewServiceUnavailable(""), writes: []string{write}, want: says("no quota")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newWorkload("a", 1, nil))
			if tc.before != nil {
				tc.before(w)
			}
			w.writes, w.before = nil, once(tc.fails)
			p := newPendingWriter(w, clocktesting.NewFakePassiveClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)))
			tc.do(p)
			for range tc.tries {
				p.write(t.Context(), engine.Key{Namespace: "ns", Name: "a"})
			}
			if diff := cmp.Diff(tc.writes, w.written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if len(p.reasons) != 0 {
				t.Errorf("unwritten reasons: %v, want none", p.reasons)
			}
			if n := p.queue.NumRequeues(engine.Key{Namespace: "ns", Name: "a"}); n != 0 {
				t.Errorf("%d failures are remembered, want none", n)
			}
			if tc.want != nil {
				if diff := cmp.Diff(tc.want, conditions(w.workload("a").Status.Conditions)); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestAReasonNotedDuringAWriteIsNotLost: the worker writes it after that, from the queue.
func TestAReasonNotedDuringAWriteIsNotLost(t *testing.T) {
	w := newWorld(t, newWorkload("a", 1, nil))
	p := newPendingWriter(w, clocktesting.NewFakePassiveClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)))
	var second sync.Once
	w.before = func(string) error {
		second.Do(func() { p.note(waits("two")) })
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.run(ctx) })
	p.note(waits("one"))
	w.await("both reasons are written", func() bool { return len(w.written()) == 2 })
	stop()
	done.Wait()
	if diff := cmp.Diff([]string{"QuotaReserved=False Inadmissible: two"}, conditions(w.workload("a").Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestARecreatedWorkloadGetsItsOwnReason: a Workload is created while the same reason is written for its predecessor.
func TestARecreatedWorkloadGetsItsOwnReason(t *testing.T) {
	w := newWorld(t, newWorkload("a", 1, nil))
	p := newPendingWriter(w, clocktesting.NewFakePassiveClock(now), newWriteBudget(clocktesting.NewFakePassiveClock(now)))
	later := newWorkload("a", 1, nil)
	later.UID = "later-uid"
	p.note(waits("no quota"))
	w.after = func(write string) error {
		if write == "status Workload a" {
			w.after = func(string) error { return nil }
			w.remove(newWorkload("a", 1, nil))
			w.put(later)
			word := waits("no quota")
			word.UID = "later-uid"
			p.note(word)
		}
		return nil
	}
	for range 2 {
		p.write(t.Context(), engine.Key{Namespace: "ns", Name: "a"})
	}
	if diff := cmp.Diff([]string{"QuotaReserved=False Inadmissible: no quota"}, conditions(w.workload("a").Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
