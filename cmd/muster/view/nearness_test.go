package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

func TestExplainShowsTopologyConstraints(t *testing.T) {
	rack, block := "example.com/rack", "example.com/block"
	for name, tc := range map[string]struct {
		asked     *kueue.PodSetTopologyRequest
		exclusive string
		want      []Nearness
	}{
		"unconstrained": {asked: &kueue.PodSetTopologyRequest{PodIndexLabel: ptr.To("index"), Unconstrained: ptr.To(true)}},
		"a block, and a rack for each slice": {
			asked: &kueue.PodSetTopologyRequest{Required: &block, PodSetSliceRequiredTopology: &rack,
				PodSetSliceSize: ptr.To[int32](4)},
			want: []Nearness{{Of: Required, Level: block}, {Of: Slice, Level: rack, Pods: 4}}},
		"layers of slices": {
			asked: &kueue.PodSetTopologyRequest{
				PodsetSliceRequiredTopologyConstraints: []kueue.PodsetSliceRequiredTopologyConstraint{{Topology: block, Size: 4},
					{Topology: rack, Size: 2}}},
			want: []Nearness{{Of: Slice, Level: block, Pods: 4}, {Of: Slice, Level: rack, Pods: 2}}},
		"a preferred rack": {asked: &kueue.PodSetTopologyRequest{Preferred: &rack},
			want: []Nearness{{Of: Preferred, Level: rack}}},
		"an exclusive rack for each Job": {exclusive: rack, want: []Nearness{{Of: Exclusive, Level: rack}}},
	} {
		snapshot, now := busyLab(), at(60).Time
		podSet := &snapshot.Workloads[0].Spec.PodSets[0]
		podSet.TopologyRequest = tc.asked
		podSet.Template.Annotations = map[string]string{jobset.ExclusiveKey: tc.exclusive}
		jobs := Jobs(&snapshot, now)
		e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
		if diff := cmp.Diff(tc.want, e.Asks[0].Near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
