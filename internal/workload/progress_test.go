package workload

import (
	"testing"
	"time"
)

// TestOnlyAWellFormedProgressIsRead: nobody knows who wrote the annotation.
func TestOnlyAWellFormedProgressIsRead(t *testing.T) {
	at := time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	for _, percentage := range []int64{0, 40, 100} {
		text := FormatProgress(percentage, at)
		if got, when, ok := ParseProgress(text); !ok || got != percentage || !when.Equal(at) {
			t.Errorf("%q is read as %d at %s (%t), want %d at %s", text, got, when, ok, percentage, at)
		}
	}
	for _, text := range []string{
		"", "40", "40%", "40% at", "40% at ", "40% at noon", "101% at 2026-11-30T14:00:00Z", "-1% at 2026-11-30T14:00:00Z",
		"040% at 2026-11-30T14:00:00Z", "+4% at 2026-11-30T14:00:00Z", "4.5% at 2026-11-30T14:00:00Z",
		"40% at 2026-11-30T14:00:00Z ", "40% at 2026-11-30T14:00:00+01:00", "40% at 2026-11-30T14:00:00Z\x1b[31m",
		"99999999999999999999% at 2026-11-30T14:00:00Z",
	} {
		if got, when, ok := ParseProgress(text); ok {
			t.Errorf("%q is read as %d at %s, want nothing", text, got, when)
		}
	}
}
