package waiting

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// gpu and memory are amounts of the only flavor.
const gpu, memory quota.Index = 0, 1

// room is a room with two queues of one family, in which what a class requests is its owner.
type room struct {
	*Room
	tree    quota.Tree
	family  *Family
	queues  []*Queue
	classes []*Class
	touched bool
}

func newRoom(rules ...Rules) *room {
	r := &room{Room: NewRoom()}
	limits := quota.Limits{Nominal: 4, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	for i, rule := range rules {
		name := fmt.Sprint("q", i)
		r.tree.SetQueue(name, "lab",
			quota.Quotas{{Flavor: "f", Resource: "gpu"}: limits, {Flavor: "f", Resource: "memory"}: limits})
		q := r.NewQueue()
		q.Rules = rule
		r.queues = append(r.queues, q)
	}
	for i, q := range r.queues {
		q.Node = r.tree.Queue(fmt.Sprint("q", i))
	}
	r.family = NewFamily(r.queues, func() { r.touched = true })
	return r
}

// class adds a class with one workload of the priority to a queue.
func (r *room) class(q int, priority int32, requests ...string) *Class {
	c := &Class{Of: requests, Priority: priority, From: &Local{}}
	r.queues[q].Adopt(c)
	r.classes = append(r.classes, c)
	c.Join(order.Rank{Priority: priority, Since: time.Unix(int64(len(r.classes)), 0),
		Key: order.Key{Name: fmt.Sprint("w", len(r.classes))}})
	return c
}

// block blocks all ready classes of all queues.
func (r *room) block(cause Cause) {
	for _, q := range r.queues {
		for q.Ready() > 0 {
			q.First().Block(cause, State{})
		}
	}
	r.touched = false
}

// ready returns the numbers of the classes that are ready, in the order in which they were added.
func (r *room) ready() (numbers []int) {
	for i, c := range r.classes {
		if c.IsReady() {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// TestAClassIsReadyOnceItsCauseChanges, and not for any other change.
func TestAClassIsReadyOnceItsCauseChanges(t *testing.T) {
	lower := preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.Any}
	for name, test := range map[string]struct {
		cause   Cause
		rules   Rules
		changes func(*room)
		want    []int
	}{
		"quota is released": {Cause{Quota: []quota.Index{gpu}}, Rules{},
			func(r *room) { r.family.Released([]quota.Index{gpu}) }, []int{0, 1}},
		"other quota is": {Cause{Quota: []quota.Index{gpu}}, Rules{},
			func(r *room) { r.family.Released([]quota.Index{memory}) }, nil},
		"nodes are freed": {Cause{Flavors: []string{"f"}}, Rules{},
			func(r *room) { r.NodesFreed("f") }, []int{0, 1}},
		"other nodes are": {Cause{Flavors: []string{"f"}}, Rules{},
			func(r *room) { r.NodesFreed("g") }, nil},
		"nodes are taken away where that matters": {Cause{Flavors: []string{"f"}}, Rules{FewerNodes: true},
			func(r *room) { r.NodesReduced("f") }, []int{0, 1}},
		"nodes are taken away where that does not": {Cause{Flavors: []string{"f"}}, Rules{},
			func(r *room) { r.NodesReduced("f") }, nil},
		"a workload that may grow has changed": {Cause{Growth: true}, Rules{},
			func(r *room) { r.queues[1].GrowthChanged() }, []int{1}},
		"shares move, and the queues may reclaim": {Cause{}, Rules{Preemption: lower},
			func(r *room) { r.family.SharesMoved() }, []int{0, 1}},
		"shares move, and the queues may not": {Cause{}, Rules{}, func(r *room) { r.family.SharesMoved() }, nil},
		"one starts that the second class may evict": {Cause{}, Rules{Preemption: lower},
			func(r *room) { r.queues[1].Charged(nil, &preempt.Holder{Priority: 1}) }, []int{1}},
		"one starts that no class may evict": {Cause{}, Rules{Preemption: lower},
			func(r *room) { r.queues[1].Charged(nil, &preempt.Holder{Priority: 2}) }, nil},
		"one may shrink, for its own priority as well": {Cause{}, Rules{},
			func(r *room) { r.queues[1].Shrinkable(&preempt.Holder{Priority: 2}) }, []int{1}},
		"a queue borrows what another may reclaim": {Cause{Quota: []quota.Index{gpu}},
			Rules{Preemption: lower}, func(r *room) {
				r.tree.Charge("q1", quota.Planned, quota.VectorOf(quota.Amount{Index: gpu, Value: 5}))
				r.queues[1].Charged(quota.VectorOf(quota.Amount{Index: gpu, Value: 5}), nil)
			}, []int{0}},
		"a queue that borrows memory uses GPUs": {Cause{Quota: []quota.Index{gpu, memory}},
			Rules{Preemption: lower}, func(r *room) {
				r.tree.Charge("q1", quota.Planned, quota.VectorOf(quota.Amount{Index: gpu, Value: 1},
					quota.Amount{Index: memory, Value: 5}))
				r.queues[1].Charged(quota.VectorOf(quota.Amount{Index: gpu, Value: 1}), nil)
			}, []int{0}},
		"a queue uses its own quota": {Cause{Quota: []quota.Index{gpu}}, Rules{Preemption: lower}, func(r *room) {
			r.tree.Charge("q1", quota.Planned, quota.VectorOf(quota.Amount{Index: gpu, Value: 4}))
			r.queues[1].Charged(quota.VectorOf(quota.Amount{Index: gpu, Value: 4}), nil)
		}, nil},
		"quota is held back for the second queue": {Cause{Quota: []quota.Index{gpu}}, Rules{}, func(r *room) {
			r.queues[1].HeldBack(quota.VectorOf(quota.Amount{Index: gpu, Value: 1}))
		}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(test.rules, test.rules)
			r.tree.Index(quota.FlavorResource{Flavor: "f", Resource: "gpu"})
			r.class(0, 0)
			r.class(1, 2)
			r.block(test.cause)
			test.changes(r)
			r.family.Settle()
			if got := r.ready(); !slices.Equal(got, test.want) {
				t.Errorf("classes %v are ready, want %v", got, test.want)
			}
			if len(test.want) > 0 && !r.touched {
				t.Error("nobody was told that there is something to evaluate")
			}
		})
	}
}

// TestABlockedClassIsReadyForAnotherHead: one that comes before its head, or the next one once its head is gone.
func TestABlockedClassIsReadyForAnotherHead(t *testing.T) {
	r := newRoom(Rules{})
	c := r.class(0, 0)
	rank := func(name string, second int64) order.Rank {
		return order.Rank{Since: time.Unix(second, 0), Key: order.Key{Name: name}}
	}
	first := c.Head().Since.Unix()
	for _, step := range []struct {
		what  string
		do    func()
		ready bool
	}{
		{"a later workload comes", func() { c.Join(rank("later", first+1)) }, false},
		{"an earlier workload comes", func() { c.Join(rank("earlier", first-1)) }, true},
		{"a later workload goes", func() { c.Leave(order.Key{Name: "later"}) }, false},
		{"the head goes", func() { c.Leave(order.Key{Name: "earlier"}) }, true},
	} {
		r.block(Cause{})
		if step.do(); c.IsReady() != step.ready {
			t.Errorf("%s: the class is ready %t, want %t", step.what, c.IsReady(), step.ready)
		}
	}
}

// TestASweepIsNotBegunAnew: what is released during a sweep makes classes ready at its end.
func TestASweepIsNotBegunAnew(t *testing.T) {
	r := newRoom(Rules{})
	r.class(0, 0)
	r.block(Cause{Quota: []quota.Index{gpu}, Flavors: []string{"f"}})
	r.family.Swept(true, 0, false)
	r.NodesFreed("f")
	r.family.Released([]quota.Index{gpu})
	r.family.Settle()
	if got := r.ready(); len(got) > 0 {
		t.Errorf("classes %v are ready during the sweep, want none", got)
	}
	r.family.Swept(false, 1, false)
	r.family.Settle()
	if got := r.ready(); len(got) != 1 {
		t.Errorf("%d classes are ready after the sweep, want one", len(got))
	}
}

// TestTheShortestGoFirstBehindAPlannedStart: in a queue that plans starts, the order of the queue holds up to the last
// planned start, and behind it the shortest class of the highest priority goes first.
func TestTheShortestGoFirstBehindAPlannedStart(t *testing.T) {
	r := newRoom(Rules{Backfill: true})
	q := r.queues[0]
	head, long, short, urgent := r.class(0, 0, "gpu"), r.class(0, 0, "gpu"), r.class(0, 0, "gpu"), r.class(0, 0, "gpu")
	for c, usual := range map[*Class]time.Duration{long: time.Hour, short: time.Minute, urgent: 2 * time.Hour} {
		c.Usual = usual
	}
	urgent.Priority = 1
	q.Rearrange()
	if q.First() != head {
		t.Fatal("the first in order is not the first")
	}
	head.Block(Cause{Lacks: true}, State{})
	if got := slices.Collect(q.Lacking()); !slices.Equal(got, []*Class{head}) || !head.IsLacking() {
		t.Fatalf("%d classes wait for others to end, want the head", len(got))
	}
	r.family.Reserve(true, head.Head())
	for _, want := range []*Class{urgent, short, long} {
		got := q.First()
		if got != want || !got.IsFirst() {
			t.Fatalf("the first is %v, want %v", got.Head(), want.Head())
		}
		got.Block(Cause{Behind: true}, State{})
	}
	r.family.ReservationsMoved()
	if q.Ready() != 3 || r.family.ReservationMoves() != 1 {
		t.Errorf("%d classes are ready after the planned start has moved, want 3", q.Ready())
	}
}

// TestNothingIsLeftOfClassesThatAreGone: after any changes, each class is in exactly the indexes that its cause names,
// and an empty one in none.
func TestNothingIsLeftOfClassesThatAreGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.Any}
		r := newRoom(Rules{Preemption: policy}, Rules{Strategy: Strict, FewerNodes: true}, Rules{Backfill: true})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r.step(t)
			r.checkIndexes(t)
		}
	})
}

// step does something at random.
func (r *room) step(t *rapid.T) {
	q := rapid.IntRange(0, len(r.queues)-1).Draw(t, "queue")
	queue := r.queues[q]
	switch rapid.IntRange(0, 8).Draw(t, "kind of step") {
	case 0, 1:
		r.class(q, rapid.Int32Range(0, 2).Draw(t, "priority"),
			rapid.SampledFrom([]string{"gpu", "memory"}).Draw(t, "requests"))
	case 2, 3:
		if c := queue.First(); c != nil && queue.Head() == nil {
			r.decide(t, c)
		}
	case 4:
		r.family.Released([]quota.Index{gpu})
		r.family.Settle()
	case 5:
		r.NodesFreed("f")
	case 6:
		queue.Charged(nil, &preempt.Holder{Priority: 1})
		queue.GrowthChanged()
	case 7:
		if len(r.classes) > 0 {
			c := rapid.SampledFrom(r.classes).Draw(t, "class")
			c.Leave(c.Head().Key)
		}
	case 8:
		queue.Reordered()
		r.family.Swept(rapid.Bool().Draw(t, "cut"), 0, false)
	}
}

// decide blocks a class with a cause.
func (r *room) decide(t *rapid.T, c *Class) {
	q := c.queue
	c.Block(Cause{
		Quota:   rapid.SampledFrom([][]quota.Index{nil, {gpu}, {gpu, memory}}).Draw(t, "short"),
		Flavors: rapid.SampledFrom([][]string{nil, {"f"}, {"f", "g"}}).Draw(t, "full flavors"),
		Use:     rapid.Bool().Draw(t, "by use"), Growth: rapid.Bool().Draw(t, "by growth"),
		Lacks: rapid.Bool().Draw(t, "lacks"), Behind: rapid.Bool().Draw(t, "behind a planned start"),
	}, State{})
	if q.Strategy == Strict {
		q.HoldAll(c)
	}
}

// checkIndexes compares all indexes with the causes of all classes.
func (r *room) checkIndexes(t *rapid.T) {
	want, got := map[string]int{}, map[string]int{}
	for _, c := range r.classes {
		if c.IsBlocked() && c.IsReady() || (c.Len() == 0) == (c.IsBlocked() || c.IsReady()) {
			t.Fatalf("a class of %d workloads is blocked %v and ready %v", c.Len(), c.IsBlocked(), c.IsReady())
		}
		if !c.IsBlocked() {
			continue
		}
		want["rounds"]++
		want[fmt.Sprint("priority ", c.Priority)]++
		for _, i := range c.cause.Quota {
			want[fmt.Sprint("quota ", i)]++
		}
		for _, name := range c.cause.Flavors {
			want["flavor "+name]++
		}
		if c.cause.Use {
			want["use"]++
		}
		if c.cause.Growth {
			want["growth"]++
		}
		switch {
		case c.cause.Behind:
			want["behind"]++
		case c.cause.Lacks && c.queue.Backfill:
			want["lacking"]++
		}
	}
	for i, set := range r.family.short {
		if len(set) > 0 {
			got[fmt.Sprint("quota ", i)] += len(set)
		}
	}
	for name, set := range r.byFlavor {
		got["flavor "+name] += len(set)
	}
	for _, q := range r.queues {
		for priority, set := range q.blocked {
			got[fmt.Sprint("priority ", priority)] += len(set)
		}
		got["use"] += len(q.byUse)
		got["growth"] += len(q.byGrowth)
		got["behind"] += len(q.backfill.behind)
		got["lacking"] += q.backfill.lacking.Len()
		if q.Backfill && q.backfill.shortest.Len() != q.Ready() {
			t.Fatalf("%d classes are ready, and %d of them are listed by length", q.Ready(), q.backfill.shortest.Len())
		}
	}
	got["rounds"] = r.rounds.all.Len() - 1
	for _, what := range []string{"rounds", "use", "growth", "behind", "lacking"} {
		want[what] += 0
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("classes by index: %v, want %v", got, want)
	}
}
