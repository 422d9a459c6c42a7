package attempt

import (
	"fmt"
	"testing"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

func TestDecide(t *testing.T) {
	n := func(i int32) *int32 { return &i }
	waits := func(join string) protocol.Request { return protocol.Request{State: protocol.Waiting, Join: join} }
	runs := func(round int64) protocol.Request { return protocol.Request{State: protocol.Running, Round: round} }
	for name, tc := range map[string]struct {
		seen Observed
		said protocol.Request
		want Decision
	}{
		"the first wait":                  {Observed{}, waits("a"), Decision{Assign: n(0)}},
		"an attempt that may not run yet": {Observed{Attempt: n(0), Join: "a"}, waits("a"), Decision{}},
		"an attempt that may run": {Observed{Current: n(0), Attempt: n(0), Join: "a"}, waits("a"),
			Decision{Go: n(0)}},
		"a running attempt": {Observed{Current: n(0), Attempt: n(0), Join: "a"}, runs(1), Decision{}},
		"a new wait during an attempt": {Observed{Current: n(0), Attempt: n(0), Join: "a"}, waits("b"),
			Decision{Assign: n(1)}},
		"a running pod of an attempt that is over": {Observed{Current: n(0), Previous: n(0), Attempt: n(0), Join: "a"},
			runs(1), Decision{Over: "attempt 0 of the JobSet is over"}},
		"a second new wait": {Observed{Current: n(0), Attempt: n(1), Join: "b"}, waits("c"),
			Decision{Assign: n(1)}},
		"a wait for an attempt that is over": {Observed{Current: n(1), Previous: n(1), Attempt: n(1), Join: "b"}, waits("b"),
			Decision{Assign: n(2)}},
		"a status from before the annotation": {Observed{Current: n(0), Previous: n(1), Attempt: n(1), Join: "b"},
			waits("b"), Decision{}},
		"no barrier": {Observed{Disabled: true, Attempt: n(0), Join: "a"}, waits("a"), Decision{Go: n(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.seen, tc.said)
			if !ptr.Equal(got.Assign, tc.want.Assign) || !ptr.Equal(got.Go, tc.want.Go) || got.Over != tc.want.Over {
				t.Errorf("decision = %s, want %s", text(got), text(tc.want))
			}
		})
	}
}

func text(v Decision) string {
	return fmt.Sprintf("assign %d, go %d, over %q", ptr.Deref(v.Assign, -1), ptr.Deref(v.Go, -1), v.Over)
}

// fakeJobSet is a JobSet whose pods have agents; reconcile does what the JobSet controller does.
type fakeJobSet struct {
	current, previous *int32
	pods              []pod
	joins             int
}

type pod struct {
	attempt *int32
	join    string
	request protocol.Request
}

// reconcile updates the status as the JobSet controller does, from the attempts of the pods.
func (f *fakeJobSet) reconcile() {
	first, last, all := int32(-1), int32(-1), true
	for _, p := range f.pods {
		if p.attempt == nil {
			all = false
			continue
		}
		first = max(first, *p.attempt)
		if last < 0 || *p.attempt < last {
			last = *p.attempt
		}
	}
	switch {
	case all && first == last && first >= ptr.Deref(f.current, 0):
		f.current = ptr.To(first)
	case first > 0 && first-1 >= ptr.Deref(f.previous, 0):
		f.previous = ptr.To(first - 1)
	}
}

func (f *fakeJobSet) wait(i int) {
	f.joins++
	f.pods[i].request = protocol.Request{State: protocol.Waiting, Join: fmt.Sprint(f.joins)}
}

func (f *fakeJobSet) step(i int) (moved bool) {
	p := &f.pods[i]
	v := Decide(Observed{Current: f.current, Previous: f.previous, Attempt: p.attempt, Join: p.join}, p.request)
	switch {
	case v.Over != "":
		f.wait(i)
	case v.Assign != nil:
		p.attempt, p.join = v.Assign, p.request.Join
	case v.Go != nil:
		p.request.State, p.request.Round = protocol.Running, Number(*v.Go)
	default:
		return false
	}
	return true
}

// TestAllPodsConvergeOnOneAttempt: whatever fails, all pods end in one attempt, which no pod has run before.
func TestAllPodsConvergeOnOneAttempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &fakeJobSet{pods: make([]pod, rapid.IntRange(1, 5).Draw(t, "pods"))}
		for i := range w.pods {
			w.wait(i)
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			i := rapid.IntRange(0, len(w.pods)-1).Draw(t, "pod")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w.wait(i) // the pod fails, or its container restarts
			case 1:
				w.reconcile()
			default:
				w.step(i)
			}
			for _, p := range w.pods {
				if p.request.State == protocol.Running && (w.current == nil || p.request.Round > Number(*w.current)) {
					t.Fatalf("a pod runs attempt %d before the status allows it", p.request.Round-1)
				}
			}
		}
		for moved, rounds := true, 0; moved; rounds++ {
			moved = false
			for i := range w.pods {
				moved = w.step(i) || moved
			}
			before := [2]int32{ptr.Deref(w.current, -1), ptr.Deref(w.previous, -1)}
			w.reconcile()
			moved = moved || before != [2]int32{ptr.Deref(w.current, -1), ptr.Deref(w.previous, -1)}
			if rounds > 1000 {
				t.Fatal("the attempts do not converge")
			}
		}
		for i, p := range w.pods {
			if p.request.State != protocol.Running || p.request.Round != w.pods[0].request.Round {
				t.Fatalf("pod %d is %s in round %d, pod 0 %s in round %d", i, p.request.State, p.request.Round,
					w.pods[0].request.State, w.pods[0].request.Round)
			}
		}
	})
}
