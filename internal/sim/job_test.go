package sim

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// TestMixMatchesItsParameters: jobs are in order of arrival with sizes within bounds, and have the wanted total load.
func TestMixMatchesItsParameters(t *testing.T) {
	mix := Mix{Jobs: 160, Within: 8 * time.Hour, Largest: 16, Sigma: 1.5, Exponent: 0.85}
	for seed := range uint64(20) {
		jobs := mix.Draw(seed, 64, 1.5)
		gpuHours, largest, logs := 0.0, int32(0), []float64{}
		for i, j := range jobs {
			if j.Min != (j.Max+3)/4 || j.Max < 1 || j.Max > 16 || j.Arrives < 0 || j.Arrives >= mix.Within {
				t.Fatalf("drawn job %+v is out of bounds", j)
			}
			if i > 0 && (j.Name <= jobs[i-1].Name || j.Arrives < jobs[i-1].Arrives) {
				t.Fatalf("%s arrives at %s, after %s at %s", j.Name, j.Arrives, jobs[i-1].Name, jobs[i-1].Arrives)
			}
			lasts := j.Work.Hours() / math.Pow(float64(j.Max), 0.85)
			gpuHours, largest, logs = gpuHours+lasts*float64(j.Max), max(largest, j.Max), append(logs, math.Log(lasts))
		}
		if math.Abs(gpuHours-1.5*64*8) > 0.01 || largest != 16 {
			t.Errorf("seed %d draws %f GPU hours at sizes up to %d, want %v up to 16", seed, gpuHours, largest, 1.5*64*8)
		}
		if sigma := deviation(logs); sigma < 1.1 || sigma > 1.9 {
			t.Errorf("seed %d: standard deviation of log durations = %f, want 1.1 to 1.9", seed, sigma)
		}
	}
	if reflect.DeepEqual(mix.Draw(1, 64, 1), mix.Draw(2, 64, 1)) {
		t.Error("two seeds draw the same jobs")
	}
}

func deviation(of []float64) float64 {
	mean, squares := 0.0, 0.0
	for _, x := range of {
		mean += x / float64(len(of))
	}
	for _, x := range of {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares / float64(len(of)))
}

func TestQuantilesUseTheNearestRank(t *testing.T) {
	var r Result
	for i := range 160 {
		r.Took = append(r.Took, time.Duration(160-i))
	}
	for share, want := range map[float64]time.Duration{0.99: 159, 0.5: 80, 1: 160, 0: 1} {
		if got := r.Quantile(share); got != want {
			t.Errorf("Quantile(%g) = %d, want %d", share, got, want)
		}
	}
	if got := r.Mean(); got != 80 { // 80.5 in whole nanoseconds
		t.Errorf("Mean = %d, want 80", got)
	}
}
