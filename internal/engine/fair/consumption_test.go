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
		"no time":             {0, time.Hour, 0},
		"one half-life":       {time.Hour, time.Hour, 0.5},
		"two half-lives":      {2 * time.Hour, time.Hour, 0.75},
		"no half-life":        {time.Second, 0, 1},
		"time goes backwards": {-time.Hour, time.Hour, 0},
		"the longest time":    {math.MaxInt64, 1, 1},
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
		"no usage":               {Consumption{"cpu": 8}, nil, Consumption{"cpu": 4}},
		"new usage":              {nil, Consumption{"cpu": 8}, Consumption{"cpu": 4}},
		"constant usage":         {Consumption{"cpu": 8}, Consumption{"cpu": 8}, Consumption{"cpu": 8}},
		"different resources":    {Consumption{"cpu": 8}, Consumption{"gpu": 2}, Consumption{"cpu": 4, "gpu": 1}},
		"negligible consumption": {Consumption{"cpu": 1e-6}, nil, Consumption{}},
		"negligible consumption of negligible usage": {nil, Consumption{"cpu": 1e-6}, Consumption{"cpu": 5e-7}},
		"the largest amounts": {Consumption{"cpu": math.MaxInt64}, Consumption{"cpu": math.MaxInt64},
			Consumption{"cpu": math.MaxInt64}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.old.After(time.Hour, time.Hour, tc.used)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("consumption (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWeighed(t *testing.T) {
	c := Consumption{"cpu": 8, "memory": 1 << 30, "gpu": 2}
	if got, want := c.Weighed(map[string]float64{"cpu": 0.5, "memory": 0}), 6.0; got != want {
		t.Errorf("weighed = %v, want %v", got, want)
	}
	if got := c.Weighed(map[string]float64{"memory": math.MaxFloat64}); !math.IsInf(got, 1) {
		t.Errorf("weighed = %v, want infinity", got)
	}
}
