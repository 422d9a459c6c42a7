package view

import (
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Nearness says of some pods of a pod set that they are to be in one domain of a level: of all ("Required", or "Preferred" where it is
// only wished for), of each slice of so many pods ("Slice"), or of each Job of a JobSet, which has the domain for itself ("Exclusive").
type Nearness struct {
	Of    string `json:"of"`
	Level string `json:"level"`
	Pods  int32  `json:"slicePods,omitempty"`
}

// The values of Nearness.Of.
const (
	Required  = "Required"
	Preferred = "Preferred"
	Slice     = "Slice"
	Exclusive = "Exclusive"
)

// nearnessOf is how near each other the pods of a pod set are to be, the widest level first; none where it does not matter.
func nearnessOf(podSet *kueue.PodSet) (out []Nearness) {
	if asked := podSet.TopologyRequest; asked != nil {
		if level := ptr.Deref(asked.Required, ""); level != "" {
			out = append(out, Nearness{Of: Required, Level: level})
		}
		if level := ptr.Deref(asked.Preferred, ""); level != "" {
			out = append(out, Nearness{Of: Preferred, Level: level})
		}
		if level := ptr.Deref(asked.PodSetSliceRequiredTopology, ""); level != "" {
			out = append(out, Nearness{Of: Slice, Level: level, Pods: ptr.Deref(asked.PodSetSliceSize, 1)})
		}
		for _, layer := range asked.PodsetSliceRequiredTopologyConstraints {
			out = append(out, Nearness{Of: Slice, Level: layer.Topology, Pods: layer.Size})
		}
	}
	if level := podSet.Template.Annotations[jobset.ExclusiveKey]; level != "" {
		out = append(out, Nearness{Of: Exclusive, Level: level})
	}
	return out
}
