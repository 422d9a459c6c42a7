package jobs

import (
	"testing"

	"github.com/musterhq/muster/api/muster"
)

// TestSizeIsAtMostWhatWasGranted, even if the minimum was raised after the admission.
func TestSizeIsAtMostWhatWasGranted(t *testing.T) {
	for _, tc := range []struct{ least, most, granted, want int32 }{{1, 8, 2, 2}, {4, 8, 2, 2},
		{1, 8, 9, 8}, {8, 8, 8, 8}} {
		if got := (Bounds{Least: tc.least, Most: tc.most, Elastic: true}).Size(tc.granted); got != tc.want {
			t.Errorf("bounds %d to %d, %d granted: Size = %d, want %d", tc.least, tc.most, tc.granted, got, tc.want)
		}
	}
}

// TestNumbersThatTheAPIRejectsCountAsAbsent: a job may have been stored before the API rejected them.
func TestNumbersThatTheAPIRejectsCountAsAbsent(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "many": 0, "-1": 0, "0": 0, "1": 1, "9999": 9999, "10000": 10000,
		"10001": 0, "2147483647": 0, "4294967297": 0} {
		n, ok := ReplicasIn(map[string]string{muster.MaxReplicasAnnotation: text}, muster.MaxReplicasAnnotation)
		if ok != (want > 0) || ok && n != want {
			t.Errorf("%q counts as %d, %v; want %d", text, n, ok, want)
		}
	}
}
