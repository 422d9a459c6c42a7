package fair

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFading(t *testing.T) {
	for name, tc := range map[string]struct {
		elapsed, halfLife time.Duration
		want              float64
	}{
		"after no time nothing has faded":         {0, time.Hour, 0},
		"after a half-life half has":              {time.Hour, time.Hour, 0.5},
		"after two three quarters have":           {2 * time.Hour, time.Hour, 0.75},
		"without a half-life all has":             {time.Second, 0, 1},
		"if time goes backwards nothing has":      {-time.Hour, time.Hour, 0},
		"after the longest time there is all has": {math.MaxInt64, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Fading(tc.elapsed, tc.halfLife); got != tc.want {
				t.Errorf("%v of the past has faded, want %v", got, tc.want)
			}
		})
	}
}

func TestConsumptionAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		old, used Consumption
		want      Consumption
	}{
		"what is not used fades":           {Consumption{"cpu": 8}, nil, Consumption{"cpu": 4}},
		"what is used comes in":            {nil, Consumption{"cpu": 8}, Consumption{"cpu": 4}},
		"what is used all the time stays":  {Consumption{"cpu": 8}, Consumption{"cpu": 8}, Consumption{"cpu": 8}},
		"resources are apart":              {Consumption{"cpu": 8}, Consumption{"gpu": 2}, Consumption{"cpu": 4, "gpu": 1}},
		"next to nothing is forgotten":     {Consumption{"cpu": 1e-6}, nil, Consumption{}},
		"but not while as little is used":  {nil, Consumption{"cpu": 1e-6}, Consumption{"cpu": 5e-7}},
		"the largest amounts stay numbers": {Consumption{"cpu": math.MaxInt64}, Consumption{"cpu": math.MaxInt64}, Consumption{"cpu": math.MaxInt64}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.old.After(time.Hour, time.Hour, tc.used)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWeighed(t *testing.T) {
	c := Consumption{"cpu": 8, "memory": 1 << 30, "gpu": 2}
	if got, want := c.Weighed(map[string]float64{"cpu": 0.5, "memory": 0}), 6.0; got != want {
		t.Errorf("weighs %v, want %v", got, want)
	}
	if got := c.Weighed(map[string]float64{"memory": math.MaxFloat64}); !math.IsInf(got, 1) {
		t.Errorf("beyond all bounds weighs %v", got)
	}
}
