package fair

import (
	"math"
	"math/big"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/quota"
)

// member is a queue of the cohort lab.
type member struct {
	name   string
	weight string // "" for none
	quotas map[string]int64
	used   map[string]int64
}

func key(resourceOfFlavor string) quota.FlavorResource {
	resource, flavor, _ := cutAt(resourceOfFlavor)
	return quota.FlavorResource{Flavor: flavor, Resource: resource}
}

// cutAt reads "cpu@spot".
func cutAt(s string) (before, after string, found bool) {
	for i := range s {
		if s[i] == '@' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "default", false
}

func vector(t *quota.Tree, amounts map[string]int64) quota.Vector {
	var out []quota.Amount
	for name, value := range amounts {
		out = append(out, quota.Amount{Index: t.Index(key(name)), Value: value})
	}
	return quota.VectorOf(out...)
}

// cohort returns the tree of lab with its members and its own quota.
func cohort(own map[string]int64, members ...member) *quota.Tree {
	t := &quota.Tree{}
	t.SetCohort("lab", "", quotas(own))
	for _, m := range members {
		t.SetQueue(m.name, "lab", quotas(m.quotas))
		if m.weight != "" {
			w := quota.WeightOf(resource.MustParse(m.weight))
			t.SetQueueWeight(m.name, &w)
		}
		t.Charge(m.name, quota.Held, vector(t, m.used))
	}
	return t
}

func quotas(amounts map[string]int64) quota.Quotas {
	out := quota.Quotas{}
	for name, value := range amounts {
		out[key(name)] = quota.Limits{Nominal: value, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	}
	return out
}

type amounts = map[string]int64

func TestShare(t *testing.T) {
	for name, tc := range map[string]struct {
		own    amounts
		member member
		more   amounts
		want   int64
	}{
		"usage within the quota": {nil,
			member{quotas: amounts{"cpu": 4}, used: amounts{"cpu": 4}}, nil, 0},
		"borrowed by lendable quota": {amounts{"cpu": 6},
			member{quotas: amounts{"cpu": 4}, used: amounts{"cpu": 6}}, nil, 200},
		"requests count as usage": {amounts{"cpu": 6},
			member{quotas: amounts{"cpu": 4}, used: amounts{"cpu": 4}}, amounts{"cpu": 2}, 200},
		"rounded up": {amounts{"cpu": 3}, member{used: amounts{"cpu": 1}}, nil, 334},
		"the resource with the largest part": {amounts{"cpu": 10, "gpu": 4},
			member{used: amounts{"cpu": 3, "gpu": 2}}, nil, 500},
		"flavors of a resource are added up": {amounts{"cpu@a": 6, "cpu@b": 4},
			member{used: amounts{"cpu@a": 1, "cpu@b": 1}}, nil, 200},
		"unused quota of one flavor does not pay for another": {amounts{"cpu@b": 4},
			member{quotas: amounts{"cpu@a": 6}, used: amounts{"cpu@b": 2}}, nil, 200},
		"twice the weight": {amounts{"cpu": 10}, member{weight: "2", used: amounts{"cpu": 5}}, nil, 250},
		"half the weight":  {amounts{"cpu": 10}, member{weight: "500m", used: amounts{"cpu": 5}}, nil, 1000},
		"weight 0 and borrowing": {amounts{"cpu": 10}, member{weight: "0", used: amounts{"cpu": 1}},
			nil, math.MaxInt64},
		"weight 0 without borrowing":      {amounts{"cpu": 10}, member{weight: "0"}, nil, 0},
		"borrowed without lendable quota": {nil, member{used: amounts{"cpu": 3}}, nil, 3000},
		"the smallest weight": {amounts{"cpu": 1}, member{weight: "2n", used: amounts{"cpu": math.MaxInt64}},
			nil, math.MaxInt64},
		"the largest amounts": {amounts{"cpu": math.MaxInt64}, member{weight: "1e30", used: amounts{"cpu": math.MaxInt64}},
			amounts{"cpu": math.MaxInt64}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tc.member.name = "q"
			tree := cohort(tc.own, tc.member)
			if got := Of(tree.Queue("q"), quota.Held, vector(tree, tc.more)).Thousandths(); got != tc.want {
				t.Errorf("share = %d thousandths, want %d", got, tc.want)
			}
		})
	}
}

func TestRootHasNoShare(t *testing.T) {
	tree := &quota.Tree{}
	tree.SetQueue("alone", "", nil)
	tree.Charge("alone", quota.Held, vector(tree, amounts{"cpu": 5}))
	if s := Of(tree.Queue("alone"), quota.Held, nil); !s.Zero() {
		t.Errorf("share of a root = %d thousandths, want 0", s.Thousandths())
	}
}

func TestShareOfACohortIsWhatItsQueuesBorrowBeyondIt(t *testing.T) {
	tree := &quota.Tree{}
	tree.SetCohort("root", "", quotas(amounts{"cpu": 10}))
	tree.SetCohort("team", "root", quotas(amounts{"cpu": 6}))
	tree.SetQueue("q", "team", quotas(amounts{"cpu": 4}))
	queue, team := tree.Queue("q"), tree.Cohort("team")
	for _, tc := range []struct{ asked, queue, team int64 }{{4, 0, 0}, {10, 300, 0}, {15, 550, 250}} {
		v := vector(tree, amounts{"cpu": tc.asked})
		if got := Of(queue, quota.Held, v).Thousandths(); got != tc.queue {
			t.Errorf("with a request of %d: share of the queue = %d thousandths, want %d", tc.asked, got, tc.queue)
		}
		if got := With(team, quota.Held, queue, v).Thousandths(); got != tc.team {
			t.Errorf("with a request of %d: share of the cohort = %d thousandths, want %d", tc.asked, got, tc.team)
		}
	}
}

func TestCompare(t *testing.T) {
	none, third, half := Share{}, Share{1, 3, quota.One}, Share{1, 2, quota.One}
	heavy, light := Share{1, 2, 2 * quota.One}, Share{1, 1000, 0}
	for name, tc := range map[string]struct {
		a, b Share
		want int
	}{
		"nothing borrowed and a part":                 {none, third, -1},
		"nothing borrowed twice":                      {none, Share{0, 7, 0}, 0},
		"different parts":                             {half, third, 1},
		"equal parts of different totals":             {Share{2, 6, quota.One}, third, 0},
		"parts that differ by less than a thousandth": {Share{333_333, 1_000_000, quota.One}, third, -1},
		"different weights":                           {heavy, third, -1},
		"weight 0":                                    {light, half, 1},
		"weight 0 twice":                              {light, Share{2, 1000, 0}, -1},
		"nothing borrowed and weight 0":               {none, light, -1},
		"the largest numbers": {
			Share{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64}, Share{math.MaxInt64, math.MaxInt64, math.MaxInt64}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Compare(tc.b); got != tc.want {
				t.Errorf("Compare(a, b) = %d, want %d", got, tc.want)
			}
			if got := tc.b.Compare(tc.a); got != -tc.want {
				t.Errorf("Compare(b, a) = %d, want %d", got, -tc.want)
			}
		})
	}
}

// TestCompareIsExact compares the result with that of unbounded fractions.
func TestCompareIsExact(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) Share {
		any := rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(math.MaxInt64-5, math.MaxInt64),
			rapid.Int64Range(1, math.MaxInt64))
		return Share{any.Draw(t, "borrowed"), any.Draw(t, "lendable"), quota.Weight(any.Draw(t, "weight"))}
	})
	fraction := func(s Share) *big.Rat {
		under := new(big.Int).Mul(big.NewInt(s.lendable), big.NewInt(int64(s.weight)))
		return new(big.Rat).SetFrac(big.NewInt(s.borrowed), under)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if got, want := a.Compare(b), fraction(a).Cmp(fraction(b)); got != want {
			t.Fatalf("%+v and %+v compare as %d, want %d", a, b, got, want)
		}
	})
}
