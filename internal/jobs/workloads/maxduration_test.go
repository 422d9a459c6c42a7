package workloads

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// bounded returns a ClusterQueue whose maximum duration is the text.
func bounded(text string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq",
		Annotations: map[string]string{muster.MaxDurationAnnotation: text}}}
}

func TestMaxDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1d12h": 36 * time.Hour,
		"2w": 14 * 24 * time.Hour,
		"1y": 365 * 24 * time.Hour, "500ms": 500 * time.Millisecond, "1m1ms": time.Minute + time.Millisecond,
		"soon": 0, "-1h": 0, "1h1d": 0, "1.5h": 0, "99999999999999999999s": 0, "9999999999y": 0, "292y9999w": 0,
	} {
		if got := MaxDuration(bounded(text)); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if got := MaxDuration(nil); got != 0 {
		t.Errorf("without a ClusterQueue the maximum is %s, want 0", got)
	}
}

func TestQueueBoundsTheExecutionTime(t *testing.T) {
	queues := func(text string) jobs.QueueFacts {
		return jobs.QueueFacts{Cluster: map[string]*kueue.ClusterQueue{"cq": bounded(text)},
			Local: map[string]*kueue.LocalQueue{"q": {Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}}}
	}
	for name, test := range map[string]struct {
		limit *int32
		bound string
		want  *int32
	}{
		"no limit, no bound":    {nil, "0", nil},
		"no limit":              {nil, "1h", ptr.To[int32](3600)},
		"limit below the bound": {ptr.To[int32](60), "1h", ptr.To[int32](60)},
		"limit above the bound": {ptr.To[int32](7200), "1h", ptr.To[int32](3600)},
		"bound below a second":  {nil, "1ms", ptr.To[int32](1)},
		"bound of centuries":    {nil, "200y", ptr.To[int32](1<<31 - 1)},
	} {
		got := request{maximumExecutionTimeSeconds: test.limit}.within("q", queues(test.bound)).maximumExecutionTimeSeconds
		if !ptr.Equal(got, test.want) {
			t.Errorf("%s: the limit is %v s, want %v s", name, ptr.Deref(got, -1), ptr.Deref(test.want, -1))
		}
	}
	if got := (request{}).within("other", queues("1h")).maximumExecutionTimeSeconds; got != nil {
		t.Errorf("a missing queue limits the job to %d s, want no limit", *got)
	}
}
