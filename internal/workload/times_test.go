package workload

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "87600h": LongestTime,
		"": 0, "0": 0, "0s": 0, "-1h": 0, "87601h": 0, "1d": 0, "soon": 0, "90": 0,
	} {
		if got := ParseTime(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestQueueTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1d12h": 36 * time.Hour, "10y": LongestTime, "11y": 0, "-1h": 0, "": 0,
	} {
		q := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": text}}}
		if got := QueueTime(q, "a"); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
