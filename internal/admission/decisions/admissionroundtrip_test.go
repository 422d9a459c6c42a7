package decisions

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
)

// TestAnAdmissionReadsBackAsWritten: if anything were lost, the writer would not recognize its own admission.
func TestAnAdmissionReadsBackAsWritten(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Min(0), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		given := &engine.Admission{ClusterQueue: "cq"}
		for i := range rapid.IntRange(0, 3).Draw(t, "pod sets") {
			a := engine.Assignment{PodSet: fmt.Sprintf("ps%d", i), Count: rapid.Int32Min(0).Draw(t, "count"),
				Flavors: map[string]string{}, Usage: map[string]int64{}}
			for _, name := range []string{"cpu", "memory", "nvidia.com/gpu", "pods"} {
				if rapid.Bool().Draw(t, "asks for "+name) {
					a.Flavors[name], a.Usage[name] = "f", amount.Draw(t, name)
				}
			}
			for j := range rapid.IntRange(0, 3).Draw(t, "nodes") {
				a.Places = append(a.Places,
					place.NodeCount{Node: fmt.Sprintf("n%d", j), Count: rapid.Int32Range(1, 9).Draw(t, "pods there")})
			}
			given.PodSets = append(given.PodSets, a)
		}
		levels := rapid.SampledFrom([][]string{{"block", corev1.LabelHostname}, {"block", "rack"},
			{corev1.LabelHostname}}).Draw(t, "levels")
		places := map[string]*kueue.TopologyAssignment{}
		for _, a := range given.PodSets {
			if len(a.Places) > 0 {
				places[a.PodSet] = translate.TopologyAssignment(a.Places, levels,
					func(string) map[string]string { return map[string]string{"block": "b", "rack": "r"} })
			}
		}
		var w, read kueue.Workload
		admit(&w, given, places, admissiontest.Now)
		text, err := json.Marshal(&w)
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := admissionOf(&read); !got.Equal(given) {
			t.Fatalf("wrote %+v, read %+v", given, got)
		}
	})
}
