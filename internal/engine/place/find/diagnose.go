package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// Diagnose explains why the asks have no places now.
func (f *Finder) Diagnose(asks []place.Ask) Diagnosis {
	s, wrong := f.open(asks, place.Now)
	if wrong != nil {
		return Diagnosis{PodSets: []AskDiagnosis{{Shortfall: *wrong}}}
	}
	if s.run() {
		s.close()
		return Diagnosis{Fits: true}
	}
	var out Diagnosis
	s.takeBack(0)
	alone := true
	byAsk := slices.Clone(s.wants)
	slices.SortFunc(byAsk, func(a, b *want) int { return a.index - b.index })
	for _, w := range byAsk {
		s.count(w)
		alone = s.fitsAlone(w) && alone
		out.PodSets = append(out.PodSets, explainer{f, s}.diagnose(w))
	}
	for i := range out.PodSets {
		out.PodSets[i].Together = alone && len(out.PodSets) > 1
	}
	s.close()
	out.Relaxation = f.relax(asks, out.PodSets)
	return out
}

// Diagnosis explains to users why asks have no places.
type Diagnosis struct {
	// Fits is set if there are places after all.
	Fits bool `json:"fits,omitempty"`
	// PodSets has an entry for each ask.
	PodSets []AskDiagnosis `json:"podSets,omitempty"`
	// Relaxation is the smallest change to the asks with which they would fit now, empty if no change that is tried helps.
	Relaxation string `json:"relaxation,omitempty"`
}

// AskDiagnosis explains the situation of one pod set.
type AskDiagnosis struct {
	Shortfall
	// Best is the domain that could hold most of the pods; nil if no node can hold any.
	Best *Domain `json:"best,omitempty"`
}

// Domain is a domain of a topology with what it has for an ask.
type Domain struct {
	// Level is the node label of the domain's level, empty for the whole topology. Values are the label
	// values of the levels down to it.
	Level  string   `json:"level,omitempty"`
	Values []string `json:"values,omitempty"`
	// Fits is the number of pods that fit, Lacks the number of pods that do not.
	Fits  int32 `json:"fits"`
	Lacks int32 `json:"lacks"`
	// Resource is the one that most of its nodes run out of first, empty if resources are not the reason.
	Resource string `json:"resource,omitempty"`
}
