package elastic

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/order"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// job returns a job of a size within bounds. A later second puts it later in the queue.
func job(fewest, most, size, priority int32, second int) Job {
	return Job{Key: order.Key{Namespace: "ns", Name: fmt.Sprint("j", second)}, Min: fewest, Max: most, Size: size,
		Priority: priority,
		QueuedAt: epoch.Add(time.Duration(second) * time.Second), RunsSince: epoch, Exponent: DefaultExponent}
}

// grown makes the jobs grow into this capacity, and returns their sizes.
func grown(room int, jobs ...Job) string {
	return grownBy(Policy{}, room, jobs...)
}

func grownBy(p Policy, room int, jobs ...Job) string {
	p.Grow(jobs, func(int) bool { room--; return room >= 0 })
	return sizes(jobs)
}

func sizes(jobs []Job) string {
	var out []string
	for _, j := range jobs {
		out = append(out, fmt.Sprint(j.Size))
	}
	return strings.Join(out, " ")
}

func TestGrow(t *testing.T) {
	linear, flat := job(1, 9, 1, 0, 3), job(1, 9, 1, 0, 1)
	linear.Exponent, flat.Exponent = 1, 0.3
	for name, tc := range map[string]struct {
		room int
		jobs []Job
		want string
	}{
		"no other job":                             {10, []Job{job(2, 4, 2, 0, 1)}, "4"},
		"less capacity than wanted":                {1, []Job{job(2, 4, 2, 0, 1)}, "3"},
		"equal jobs: the first grows":              {1, []Job{job(2, 4, 2, 0, 2), job(2, 4, 2, 0, 1)}, "2 3"},
		"the smaller job gains more":               {3, []Job{job(1, 9, 4, 0, 1), job(1, 9, 1, 0, 2)}, "4 4"},
		"the higher priority grows first":          {5, []Job{job(1, 9, 1, 0, 1), job(1, 5, 1, 1, 2)}, "2 5"},
		"a larger gain before an earlier position": {4, []Job{flat, linear}, "1 5"},
		"no capacity":                              {0, []Job{job(1, 2, 1, 0, 1)}, "1"},
	} {
		if got := grown(tc.room, tc.jobs...); got != tc.want {
			t.Errorf("%s: sizes %s, want %s", name, got, tc.want)
		}
	}
}

// costly is a policy by which a resize loses a twentieth of the work of a size.
var costly = Policy{ResizeCost: 30 * time.Second}

// TestCapacityGoesToFewJobs: a resize costs the same for one replica as for three.
func TestCapacityGoesToFewJobs(t *testing.T) {
	steep := job(1, 9, 1, 0, 1)
	steep.Exponent = 0.3
	for name, tc := range map[string]struct {
		room int
		jobs []Job
		want string
	}{
		"equal jobs: the first grows completely first": {3,
			[]Job{job(2, 4, 2, 0, 1), job(2, 4, 2, 0, 2), job(2, 4, 2, 0, 3)}, "4 3 2"},
		"the smaller job gains more":              {3, []Job{job(1, 9, 4, 0, 1), job(1, 9, 1, 0, 2)}, "4 4"},
		"a job gains much more than another":      {2, []Job{steep, job(1, 9, 6, 0, 2)}, "1 8"},
		"different priorities":                    {3, []Job{job(1, 3, 1, 1, 2), job(1, 9, 1, 0, 1)}, "3 2"},
		"another replica costs no further resize": {8, []Job{job(1, 9, 1, 0, 1), job(1, 9, 1, 0, 2)}, "5 5"},
	} {
		if got := grownBy(costly, tc.room, tc.jobs...); got != tc.want {
			t.Errorf("%s: sizes %s, want %s", name, got, tc.want)
		}
	}
}

func TestYields(t *testing.T) {
	for name, tc := range map[string]struct {
		to     int32
		jobs   []Job
		want   string
		policy Policy
	}{
		"one job, down to its minimum": {0, []Job{job(2, 4, 4, 0, 1)}, "0:3 0:2", Policy{}},
		"equal jobs: the last shrinks first": {0, []Job{job(2, 4, 4, 0, 1), job(2, 4, 4, 0, 2)},
			"1:3 0:3 1:2 0:2", Policy{}},
		"the larger job loses less": {0, []Job{job(2, 9, 5, 0, 2), job(2, 9, 6, 0, 1)},
			"1:5 0:4 1:4 0:3 1:3 0:2 1:2", Policy{}},
		"a lower priority first, until it is stopped": {1, []Job{job(2, 4, 3, 1, 1), job(2, 4, 3, 0, 2), job(1, 1, 1, 0, 3)},
			"1:2 2:0 1:0 0:2", Policy{}},
		"a higher priority never shrinks": {0, []Job{job(2, 4, 4, 1, 1)}, "", Policy{}},
		"few jobs shrink if a resize is costly": {0, []Job{job(2, 4, 4, 0, 1), job(2, 4, 4, 0, 2)},
			"1:3 1:2 0:3 0:2", costly},
	} {
		var got []string
		y := tc.policy.Yielding(tc.jobs, tc.to)
		for _, step := range y.Steps(y.Len()) {
			got = append(got, fmt.Sprintf("%d:%d", step.Index, step.To))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: steps %s, want %s", name, got, tc.want)
		}
	}
}

func TestGrowsAt(t *testing.T) {
	resized := job(1, 8, 2, 0, 1)
	resized.ResizedAt = epoch.Add(time.Hour)
	flat := job(1, 8, 2, 0, 1)
	flat.Exponent = 0
	for name, tc := range map[string]struct {
		policy Policy
		job    Job
		to     int32
		want   time.Duration
	}{
		"no delay":                      {Policy{}, job(1, 8, 2, 0, 1), 3, 0},
		"a delay after the start":       {Policy{GrowAfter: time.Minute}, job(1, 8, 2, 0, 1), 3, time.Minute},
		"a delay since the last resize": {Policy{GrowAfter: time.Minute}, resized, 3, time.Hour + time.Minute},
		"once it is worth the cost": {Policy{ResizeCost: 30 * time.Second},
			func() Job { j := job(1, 8, 2, 0, 1); j.Exponent = 1; return j }(), 4, time.Minute},
		"a smaller growth is worth the cost later": {Policy{ResizeCost: 30 * time.Second},
			func() Job { j := job(1, 8, 2, 0, 1); j.Exponent = 1; return j }(), 3, 90 * time.Second},
		"no gain": {Policy{ResizeCost: time.Second}, flat, 8, longest},
		"worth the cost, but resized lately": {Policy{GrowAfter: time.Minute, ResizeCost: 30 * time.Second}, resized, 4,
			time.Hour + time.Minute},
	} {
		if got := tc.policy.GrowsAt(&tc.job, tc.to); got != epoch.Add(tc.want) {
			t.Errorf("%s: grows after %s, want %s", name, got.Sub(epoch), tc.want)
		}
	}
}

func drawJobs(t *rapid.T) []Job {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
		fewest := rapid.Int32Range(1, 4).Draw(t, "fewest")
		most := fewest + rapid.Int32Range(0, 6).Draw(t, "more")
		j := job(fewest, most, rapid.Int32Range(fewest, most).Draw(t, "size"), rapid.Int32Range(0, 2).Draw(t, "priority"),
			rapid.IntRange(0, 99).Draw(t, "second"))
		j.Exponent = rapid.SampledFrom([]float64{0.6, 0.85, 1}).Draw(t, "exponent")
		return j
	}), 0, 6).Filter(func(jobs []Job) bool {
		seen := map[order.Key]bool{}
		return !slices.ContainsFunc(jobs, func(j Job) bool { again := seen[j.Key]; seen[j.Key] = true; return again })
	}).Draw(t, "jobs")
}

// TestSizesStayWithinBounds: growth uses all capacity that any job can use, and no step of a shrink ends between zero
// and the minimum.
func TestSizesStayWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t)
		room := rapid.IntRange(0, 30).Draw(t, "room")
		before, left := slices.Clone(jobs), room
		policy := Policy{ResizeCost: time.Duration(rapid.IntRange(0, 300).Draw(t, "a resize costs")) * time.Second}
		policy.Grow(jobs, func(int) bool { left--; return left >= 0 })
		given, wanted := 0, 0
		for i, j := range jobs {
			if j.Size < before[i].Size || j.Size > j.Max {
				t.Fatalf("%+v grew to %+v, beyond its bounds", before[i], j)
			}
			given, wanted = given+int(j.Size-before[i].Size), wanted+int(j.Max-before[i].Size)
		}
		if given != min(room, wanted) {
			t.Fatalf("of %d replicas for jobs that want %d, %d were given", room, wanted, given)
		}
		to := rapid.Int32Range(0, 2).Draw(t, "for a priority")
		sizes := slices.Clone(jobs)
		spared := rapid.SliceOfDistinct(rapid.IntRange(0, 5), rapid.ID[int]).Draw(t, "spared")
		y := policy.Yielding(jobs, to, slices.Clone(spared)...)
		for n, step := range y.Steps(y.Len()) {
			j := &sizes[step.Index]
			if slices.Contains(spared, step.Index) {
				t.Fatalf("%+v shrinks although it is to be spared", j)
			}
			stops := step.To == 0 && j.Size == j.Min && j.Priority < to
			if !stops && (step.To != j.Size-1 || step.To < j.Min) || j.Priority > to {
				t.Fatalf("invalid step of %+v to %d for priority %d", j, step.To, to)
			}
			j.Size = step.To
			got := y.Sizes(n + 1)
			if slices.ContainsFunc(sizes, func(j Job) bool {
				return got[slices.IndexFunc(sizes, func(k Job) bool { return k.Key == j.Key })] != j.Size
			}) {
				t.Fatalf("after %d of %d steps, %d of them below, sizes are %v, but Sizes returned %v", n+1, y.Len(),
					y.Below(), sizes, got)
			}
			if below := n < y.Below(); below != (j.Priority < to) {
				t.Fatalf("step %d of %+v: below priority %d = %v", n, j, to, below)
			}
		}
		if len(y.Steps(math.MaxInt)) != y.Len() {
			t.Fatalf("Steps returned %d steps, Len %d", len(y.Steps(math.MaxInt)), y.Len())
		}
	})
}

// BenchmarkPass computes the sizes of 1,000 jobs on 10,000 GPUs from scratch.
func BenchmarkPass(b *testing.B) {
	var jobs []Job
	for i := range 1000 {
		jobs = append(jobs, job(1+int32(i%4), 4+int32(i%13)*2, 1+int32(i%4), int32(i%3), i))
	}
	for b.Loop() {
		now, room := slices.Clone(jobs), 10000-2500
		costly.Grow(now, func(int) bool { room--; return room >= 0 })
		y := costly.Yielding(now, 2)
		y.Steps(y.Len())
	}
}

// TestSpeedsAreBounded: however many exponents and sizes there are, the cache has few, and jobs have the same speeds
// without it.
func TestSpeedsAreBounded(t *testing.T) {
	speeds, sizes := Speeds{}, 0
	for i := range 500 {
		j := Job{Exponent: float64(i+1) / 251}
		plain := j
		j.Speeds = speeds.Of(j.Exponent, math.MaxInt32)
		for _, size := range []int32{1, 7, MaxReplicas, MaxReplicas + 1, math.MaxInt32} {
			if j.speed(size) != plain.speed(size) {
				t.Fatalf("speed of %d replicas with exponent %v = %v, want %v as without the cache", size, j.Exponent,
					j.speed(size), plain.speed(size))
			}
		}
	}
	for _, known := range speeds {
		sizes += len(known)
	}
	if sizes > 200*(MaxReplicas+1) {
		t.Errorf("the cache has %d speeds for %d exponents, want at most 200 exponents", sizes, len(speeds))
	}
}
