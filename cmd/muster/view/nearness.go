package view

import (
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Nearness is a topology constraint: pods of a pod set must share one domain of Level. Of says which pods: all of them
// ("Required", or "Preferred" if it is only a preference), each slice of Pods pods ("Slice"), or each Job of a JobSet,
// to which the domain is then exclusive ("Exclusive").
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

// nearnessOf returns the topology constraints of a pod set, the widest level first; none if it has none.
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
