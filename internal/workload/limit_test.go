package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

var admittedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bounded returns metadata with the maximum duration, "" for none.
func bounded(name, text string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: name}
	if text != "" {
		out.Annotations = map[string]string{muster.MaxDurationAnnotation: text}
	}
	return out
}

func TestMaxDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1d12h": 36 * time.Hour,
		"2w": 14 * 24 * time.Hour,
		"1y": 365 * 24 * time.Hour, "500ms": 500 * time.Millisecond, "1m1ms": time.Minute + time.Millisecond,
		"soon": 0, "-1h": 0, "1h1d": 0, "1.5h": 0, "99999999999999999999s": 0, "9999999999y": 0, "292y9999w": 0,
	} {
		if got := MaxDuration(&kueue.ClusterQueue{ObjectMeta: bounded("cq", text)}); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestTheLimitThatIsReachedFirstCounts, with what sets it and when it is reached.
func TestTheLimitThatIsReachedFirstCounts(t *testing.T) {
	own := func(limit, ends string) string {
		return limit + ", set by spec.maximumExecutionTimeSeconds of the Workload: " + ends
	}
	of := func(queue, limit, ends string) string {
		return limit + ", set by muster.dev/max-duration of " + queue + ": " + ends
	}
	for name, test := range map[string]struct {
		own, past      int32
		local, cluster string
		pauses         bool
		want           string
	}{
		"no limit":                      {},
		"its own":                       {own: 3600, want: own("1h", "13:00")},
		"the LocalQueue's":              {local: "1h30m", want: of("LocalQueue lq", "1h30m", "13:30")},
		"the ClusterQueue's":            {cluster: "1d", want: of("ClusterQueue cq", "1d", "12:00")},
		"the smaller one of the queues": {local: "2h", cluster: "1h", want: of("ClusterQueue cq", "1h", "13:00")},
		"the smaller one, a LocalQueue": {local: "1h", cluster: "2h", want: of("LocalQueue lq", "1h", "13:00")},
		"its own below the queue's":     {own: 60, local: "1h", want: own("1m", "12:01")},
		"its own above the queue's":     {own: 7200, cluster: "1h", want: of("ClusterQueue cq", "1h", "13:00")},
		"its own, equal to the queue's": {own: 3600, cluster: "1h", want: own("1h", "13:00")},
		"with past runs":                {past: 600, cluster: "1h", want: of("ClusterQueue cq", "1h", "12:50")},
		"past runs beyond the limit":    {past: 7200, cluster: "1h", want: of("ClusterQueue cq", "1h", "11:00")},
		"below a second":                {cluster: "1ms", want: of("ClusterQueue cq", "1s", "12:00")},
		"no duration":                   {cluster: "soon", local: "-1h"},
		"of a GenericJob, each run": {past: 600, cluster: "1h", pauses: true,
			want: of("ClusterQueue cq", "1h", "13:00") + ", pauses"},
		"a GenericJob's own, all runs": {own: 3600, past: 600, cluster: "1h", pauses: true, want: own("1h", "12:50")},
	} {
		w := &kueue.Workload{}
		if test.own > 0 {
			w.Spec.MaximumExecutionTimeSeconds = &test.own
		}
		if test.past > 0 {
			w.Status.AccumulatedPastExexcutionTimeSeconds = &test.past
		}
		if test.pauses {
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.tensorstack.dev/v1beta1", Kind: "GenericJob",
				Controller: ptr.To(true)}}
		}
		SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, "Admitted", "", admittedAt)
		got := ""
		if limits := Limits(w, &kueue.LocalQueue{ObjectMeta: bounded("lq", test.local)},
			&kueue.ClusterQueue{ObjectMeta: bounded("cq", test.cluster)}); len(limits) > 0 {
			got = limits[0].String() + ": " + limits[0].Ends.Format("15:04")
			if limits[0].Pauses {
				got += ", pauses"
			}
		}
		if got != test.want {
			t.Errorf("%s: the limit is %q, want %q", name, got, test.want)
		}
	}
}

func TestTheLimitOfAWaitingWorkloadHasNoEnd(t *testing.T) {
	limits := Limits(&kueue.Workload{Spec: kueue.WorkloadSpec{MaximumExecutionTimeSeconds: ptr.To[int32](7200)}}, nil,
		&kueue.ClusterQueue{ObjectMeta: bounded("cq", "1h")})
	want := []Limit{{Duration: time.Hour, Source: "muster.dev/max-duration of ClusterQueue cq"},
		{Duration: 2 * time.Hour, Source: "spec.maximumExecutionTimeSeconds of the Workload"}}
	if diff := cmp.Diff(want, limits); diff != "" {
		t.Error(diff)
	}
	if at := limits[0].Warns(); !at.IsZero() {
		t.Errorf("it is warned at %s, want never while it waits", at)
	}
}

// TestWhenAJobIsWarned: when a tenth of its limit is left, at least a minute and at most ten.
func TestWhenAJobIsWarned(t *testing.T) {
	for limit, before := range map[time.Duration]time.Duration{
		119 * time.Second: 0, 2 * time.Minute: time.Minute, 10 * time.Minute: time.Minute, 20 * time.Minute: 2 * time.Minute,
		100 * time.Minute: 10 * time.Minute, 30 * 24 * time.Hour: 10 * time.Minute,
	} {
		l := Limit{Duration: limit, Ends: admittedAt.Add(limit)}
		switch at := l.Warns(); {
		case before == 0 && !at.IsZero():
			t.Errorf("with a limit of %s there is a warning at %s, want none", limit, at)
		case before > 0 && l.Ends.Sub(at) != before:
			t.Errorf("with a limit of %s the warning comes %s before it, want %s", limit, l.Ends.Sub(at), before)
		}
	}
}

func TestDurationsAreWrittenAsQueuesWriteThem(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 36 * time.Hour: "1d12h", 90 * time.Second: "1m30s",
		time.Second + time.Millisecond: "1s1ms", time.Microsecond: "0s", 400 * 24 * time.Hour: "400d"} {
		got := FormatDuration(d)
		if got != want {
			t.Errorf("%s is written %q, want %q", d, got, want)
		}
		if back, ok := ParseDuration(got); !ok || back != d.Truncate(time.Millisecond) {
			t.Errorf("%q is read as %s, want %s", got, back, d)
		}
	}
}
