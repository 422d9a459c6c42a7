package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
)

func TestBindTimes(t *testing.T) {
	key := engine.Key{Namespace: "ns", Name: "w"}
	bound := func(name string) engine.Event {
		return engine.PodBound{Pod: place.Pod{Key: engine.Key{Namespace: "ns", Name: name}, Node: "n",
			Workload: key, PodSet: "main"}}
	}
	for name, tc := range map[string]struct {
		events []engine.Event // a second apart
		want   []time.Duration
	}{
		"all pods are bound":      {[]engine.Event{bound("a"), bound("b")}, []time.Duration{2 * time.Second}},
		"a pod is reported twice": {[]engine.Event{bound("a"), bound("a")}, nil},
		"one more pod is bound": {[]engine.Event{bound("a"), bound("b"), bound("c")},
			[]time.Duration{2 * time.Second}},
		"evicted before all pods were bound": {[]engine.Event{bound("a"),
			engine.WorkloadSet{Workload: engine.Workload{Key: key, Evicted: true}}, bound("b")}, nil},
		"deleted before all pods were bound": {[]engine.Event{bound("a"), engine.WorkloadGone{Key: key}, bound("b")}, nil},
		"the admission failed":               {[]engine.Event{engine.Failed{Key: key}, bound("a"), bound("b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			b := NewBindTimes(func(took time.Duration) { got = append(got, took) })
			b.Admitted(key, admissiontest.Gang(place.NodeCount{Node: "n", Count: 2}), admissiontest.Now)
			for i, ev := range tc.events {
				b.Apply(ev, admissiontest.Now.Add(time.Duration(i+1)*time.Second))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("bind times (-want +got):\n%s", diff)
			}
			if len(tc.want) > 0 && len(b.open) > 0 {
				t.Errorf("open measurements = %+v, want none", b.open)
			}
		})
	}
	t.Run("no places", func(t *testing.T) {
		b := NewBindTimes(nil)
		b.Admitted(key, admissiontest.Gang(), admissiontest.Now)
		if len(b.open) != 0 {
			t.Errorf("open measurements = %+v, want none", b.open)
		}
	})
}
