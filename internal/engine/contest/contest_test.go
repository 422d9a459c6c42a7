package contest

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// lab returns a tree with one cohort of queues, each of which has 4 GPUs and uses that many.
func lab(used map[string]int64) (*quota.Tree, quota.Index) {
	tree, gpu := &quota.Tree{}, quota.FlavorResource{Flavor: "f", Resource: "gpu"}
	for name := range used {
		tree.SetQueue(name, "lab", quota.Quotas{gpu: {Nominal: 4, Borrowing: quota.Unlimited, Lending: quota.Unlimited}})
	}
	for name, amount := range used {
		tree.Charge(name, quota.Planned, quota.VectorOf(quota.Amount{Index: tree.Index(gpu), Value: amount}))
	}
	return tree, tree.Index(gpu)
}

// played returns the names of the workloads in the order in which the contest lets them go. All of a queue go one after
// the other, and take what they ask for.
func played(c Contest, tree *quota.Tree, heads ...*Contestant) (names []string) {
	for _, head := range heads {
		c.Add(head)
	}
	for head := c.First(); head != nil; head = c.First() {
		names = append(names, head.Rank.Key.Name)
		tree.Charge(head.Queue.Name(), quota.Planned, head.Usage)
		c.Replace(head, nil)
		c.Recharged(head.Queue)
	}
	return names
}

func TestOrderOfHeads(t *testing.T) {
	// Queue a uses 6 of its 4 GPUs, b uses 5, and c uses none.
	head := func(tree *quota.Tree, gpu quota.Index, name string, change func(*Contestant)) *Contestant {
		out := &Contestant{Queue: tree.Queue(name),
			Rank:  order.Rank{Key: order.Key{Name: "of " + name}, Since: time.Unix(int64(name[0]), 0)},
			Usage: quota.VectorOf(quota.Amount{Index: gpu, Value: 2})}
		change(out)
		return out
	}
	same := func(*Contestant) {}
	for name, test := range map[string]struct {
		fair    bool
		a, b, c func(*Contestant)
		want    []string
	}{
		"the first in order": {false, same, same, same, []string{"of a", "of b", "of c"}},
		"the higher priority": {false, same, same, func(c *Contestant) { c.Rank.Priority = 1 },
			[]string{"of c", "of a", "of b"}},
		"who borrows less": {false, func(a *Contestant) { a.Borrowing = 2 }, func(b *Contestant) { b.Borrowing = 1 }, same,
			[]string{"of c", "of b", "of a"}},
		"the queue of the highest rank, though it borrows": {false,
			func(a *Contestant) { a.Borrowing, a.QueueRank = 2, 1 }, same, same, []string{"of a", "of b", "of c"}},
		"who has the smallest share, with fair sharing": {true, same, same, same, []string{"of c", "of b", "of a"}},
		"the smallest share before the priority": {true, func(a *Contestant) { a.Rank.Priority = 9 }, same, same,
			[]string{"of c", "of b", "of a"}},
	} {
		t.Run(name, func(t *testing.T) {
			tree, gpu := lab(map[string]int64{"a": 6, "b": 5, "c": 0})
			heads := []*Contestant{head(tree, gpu, "a", test.a), head(tree, gpu, "b", test.b), head(tree, gpu, "c", test.c)}
			if got := played(New(test.fair), tree, heads...); !slices.Equal(got, test.want) {
				t.Errorf("they go in the order %q, want %q", got, test.want)
			}
		})
	}
}
