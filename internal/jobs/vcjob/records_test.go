package vcjob

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

func TestRangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		indices := rapid.SliceOfNDistinct(rapid.Int32Range(0, 200), 0, 100, rapid.ID[int32]).Draw(t, "indices")
		slices.Sort(indices)
		if got := readRanges(writeRanges(indices)); !slices.Equal(got, indices) {
			t.Fatalf("%v became %v through %q", indices, got, writeRanges(indices))
		}
	})
}

func FuzzInvalidRecordsAreRead(f *testing.F) {
	for _, text := range []string{"worker:0-3,5;ps:1", "worker=2;worker/3=1", ":", "a:9-1", "a:0-99999999999", "=;=1;a=-1", "a:-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := readPodRecords(&volcano.JobStatus{ControlledResources: map[string]string{succeededKey: text, failedKey: text, restartsKey: text}})
		for name, n := range m.restarts {
			if n <= 0 {
				t.Errorf("%s was restarted %d times", name, n)
			}
		}
	})
}
