package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/quota"
)

// TestRankingFindsWhatComparingAllFinds: after any charges, tentative ones and changes of quotas, weights and cohorts.
func TestRankingFindsWhatComparingAllFinds(t *testing.T) {
	found, left := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		tree, ranking := &quota.Tree{}, &Ranking{}
		tree.SetCohort("lab", "", quotas(amounts{"cpu": 20, "gpu": 4}))
		tree.SetCohort("team", "lab", quotas(amounts{"cpu": r.Int64N(4)}))
		member := func() string { return fmt.Sprint("q", r.IntN(12)) }
		check := func() {
			for _, name := range []string{"lab", "team"} {
				cohort := tree.Cohort(name)
				least := Of(tree.Cohort("team"), quota.Planned, vector(tree, amounts{"cpu": r.Int64N(12)}))
				orEqual := r.IntN(2) == 0
				var want []string
				for _, n := range cohort.Children() {
					if by := Of(n, quota.Planned, nil).Compare(least); by > 0 || by == 0 && orEqual {
						want = append(want, n.Name())
					}
				}
				var got []string
				for _, n := range ranking.Above(cohort, least, orEqual) {
					got = append(got, n.Name())
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d: children of %s (-want +got):\n%s", seed, name, diff)
				}
				found, left = found+len(want), left+len(cohort.Children())-len(want)
			}
		}
		change := func() {
			usage := vector(tree, amounts{"cpu": r.Int64N(6), "gpu": r.Int64N(2)})
			switch r.IntN(10) {
			case 0:
				tree.Try(func() {
					for range r.IntN(4) {
						if name := member(); tree.Queue(name) != nil {
							tree.Release(name, quota.Planned, usage)
						}
						if r.IntN(2) == 0 {
							check()
						}
					}
				})
			case 1, 2:
				tree.Release(member(), quota.Planned, usage)
			default:
				tree.Charge(member(), quota.Planned, usage)
			}
		}
		for range 60 {
			switch r.IntN(12) {
			case 0:
				tree.SetQueue(member(), []string{"lab", "team", ""}[r.IntN(3)], quotas(amounts{"cpu": r.Int64N(4)}))
			case 1:
				weight := quota.Weight(r.Int64N(3)) * quota.One
				tree.SetQueueWeight(member(), &weight)
			case 2:
				tree.DeleteQueue(member())
			case 3:
				tree.SetCohort("lab", "", quotas(amounts{"cpu": r.Int64N(20), "gpu": 4}))
			default:
				change()
			}
			if r.IntN(2) == 0 {
				check()
			}
		}
	}
	if found < 1000 || left < 1000 {
		t.Errorf("%d children were found, and %d were not: the test tests too little", found, left)
	}
}
