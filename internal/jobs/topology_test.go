package jobs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// annotated returns pod sets of four pods with the annotations, which are given without the prefix
// kueue.x-k8s.io/podset-.
func annotated(sets ...map[string]string) []kueue.PodSet {
	var out []kueue.PodSet
	for i, set := range sets {
		podSet := kueue.PodSet{Name: kueue.PodSetReference("s" + string(rune('0'+i))), Count: 4}
		for key, value := range set {
			if podSet.Template.Annotations == nil {
				podSet.Template.Annotations = map[string]string{}
			}
			podSet.Template.Annotations["kueue.x-k8s.io/podset-"+key] = value
		}
		out = append(out, podSet)
	}
	return out
}

func TestRequestTopology(t *testing.T) {
	rack := ptr.To("example.com/rack")
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        *kueue.PodSetTopologyRequest
	}{
		"none": {nil, nil},
		"required": {map[string]string{"required-topology": *rack},
			&kueue.PodSetTopologyRequest{Required: rack}},
		"preferred": {map[string]string{"preferred-topology": *rack},
			&kueue.PodSetTopologyRequest{Preferred: rack}},
		"unconstrained": {map[string]string{"unconstrained-topology": "true"},
			&kueue.PodSetTopologyRequest{Unconstrained: ptr.To(true)}},
		"not unconstrained": {map[string]string{"unconstrained-topology": "false"}, nil},
		"required, not unconstrained": {map[string]string{"required-topology": *rack, "unconstrained-topology": "false"},
			&kueue.PodSetTopologyRequest{Required: rack}},
		"slices": {map[string]string{"slice-required-topology": *rack, "slice-size": "2"},
			&kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: rack, PodSetSliceSize: ptr.To[int32](2)}},
		"slices, the last one smaller": {map[string]string{"slice-required-topology": *rack, "slice-size": "3"},
			&kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: rack, PodSetSliceSize: ptr.To[int32](3)}},
		"slices within a preferred level": {map[string]string{"preferred-topology": "block", "slice-required-topology": *rack,
			"slice-size": "2"}, &kueue.PodSetTopologyRequest{Preferred: ptr.To("block"), PodSetSliceRequiredTopology: rack,
			PodSetSliceSize: ptr.To[int32](2)}},
		"several layers of slices": {
			map[string]string{"slice-required-topology-constraints": `[{"topology": "block", "size": 4}, {"topology": "example.com/rack", "size": 2}]`},
			&kueue.PodSetTopologyRequest{PodsetSliceRequiredTopologyConstraints: []kueue.PodsetSliceRequiredTopologyConstraint{
				{Topology: "block", Size: 4}, {Topology: *rack, Size: 2}}}},
		"group": {map[string]string{"required-topology": *rack, "group-name": "g"},
			&kueue.PodSetTopologyRequest{Required: rack, PodSetGroupName: ptr.To("g")}},
	} {
		t.Run(name, func(t *testing.T) {
			podSets := annotated(tc.annotations)
			if mistake := RequestTopology(podSets, func(int) Ranks { return Ranks{} }); mistake != nil {
				t.Fatal(mistake.Message)
			}
			if diff := cmp.Diff(tc.want, podSets[0].TopologyRequest); diff != "" {
				t.Errorf("topology request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTopologyRequestHasRanks(t *testing.T) {
	podSets := annotated(map[string]string{"required-topology": "rack"}, nil)
	if mistake := RequestTopology(podSets,
		func(i int) Ranks { return Ranks{IndexLabel: "index", GroupLabel: "group", Groups: int32(i + 2)} }); mistake != nil {
		t.Fatal(mistake.Message)
	}
	want := &kueue.PodSetTopologyRequest{Required: ptr.To("rack"), PodIndexLabel: ptr.To("index"),
		SubGroupIndexLabel: ptr.To("group"), SubGroupCount: ptr.To[int32](2)}
	if diff := cmp.Diff(want, podSets[0].TopologyRequest); diff != "" {
		t.Errorf("topology request (-want +got):\n%s", diff)
	}
	if podSets[1].TopologyRequest != nil {
		t.Errorf("the pod set without annotations has the topology request %+v", podSets[1].TopologyRequest)
	}
}

func TestMistakesInTopologyAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		sets []map[string]string
		want string
	}{
		"required and preferred": {[]map[string]string{{"required-topology": "rack", "preferred-topology": "rack"}},
			"Pod set s0: at most one of the annotations kueue.x-k8s.io/podset-required-topology and kueue.x-k8s.io/podset-preferred-topology can be set"},
		"level that is no label key": {[]map[string]string{{"required-topology": "a rack"}},
			`the annotation kueue.x-k8s.io/podset-required-topology is "a rack": it must be the key of a node label`},
		"empty level": {[]map[string]string{{"preferred-topology": ""}},
			`it must be the key of a node label`},
		"unconstrained neither true nor false": {[]map[string]string{{"unconstrained-topology": "maybe"}},
			`it must be true or false`},
		"slices without a size": {[]map[string]string{{"slice-required-topology": "rack"}},
			"must be set together"},
		"slice size without a level": {[]map[string]string{{"slice-size": "2"}}, "must be set together"},
		"slice size 0": {[]map[string]string{{"slice-required-topology": "rack",
			"slice-size": "0"}}, "it must be a number from 1 to 4"},
		"slice size above the number of pods": {[]map[string]string{{"slice-required-topology": "rack",
			"slice-size": "5"}}, "it must be a number from 1 to 4"},
		"slice size that is no number": {[]map[string]string{{"slice-required-topology": "rack",
			"slice-size": "some"}}, "it must be a number from 1 to 4"},
		"slice level that is no label key": {[]map[string]string{{"slice-required-topology": "/",
			"slice-size": "2"}}, "it must be the key of a node label"},
		"layers and a slice size": {[]map[string]string{{"slice-required-topology-constraints": "[]",
			"slice-size": "2"}}, "cannot be combined with"},
		"no layers": {[]map[string]string{{"slice-required-topology-constraints": "[]"}},
			"has 0 layers: it must have 1 to 3"},
		"layers that are no JSON": {[]map[string]string{{"slice-required-topology-constraints": "{"}},
			"must be a JSON list"},
		"inner layer larger": {
			[]map[string]string{
				{"slice-required-topology-constraints": `[{"topology":"a","size":2},{"topology":"b","size":4}]`}},
			"it must have from 1 to 2"},
		"inner layer that does not divide the outer": {[]map[string]string{
			{"slice-required-topology-constraints": `[{"topology":"a","size":4},{"topology":"b","size":3}]`}}, "a multiple"},
		"group without a level": {[]map[string]string{{"group-name": "g"}},
			"needs kueue.x-k8s.io/podset-required-topology or"},
		"group without a name": {[]map[string]string{{"required-topology": "rack", "group-name": ""}},
			"it must have 1 to 63 characters"},
		"group with different levels": {[]map[string]string{{"required-topology": "rack", "group-name": "g"},
			{"required-topology": "block", "group-name": "g"}},
			"Pod set s1: it is in group g with pod set s0, and must ask for the same"},
		"group required and preferred": {[]map[string]string{{"required-topology": "rack", "group-name": "g"},
			{"preferred-topology": "rack", "group-name": "g"}}, "must ask for the same"},
	} {
		t.Run(name, func(t *testing.T) {
			mistake := RequestTopology(annotated(tc.sets...), func(int) Ranks { return Ranks{} })
			if mistake == nil || !strings.Contains(mistake.Message, tc.want) || mistake.Reason != InvalidJob {
				t.Errorf("mistake = %+v, want %q", mistake, tc.want)
			}
		})
	}
}
