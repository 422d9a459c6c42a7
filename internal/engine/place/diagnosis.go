package place

// Diagnosis is why asks have no places, for people.
type Diagnosis struct {
	// Fits: they have places after all.
	Fits bool `json:"fits,omitempty"`
	// PodSets has an entry for each ask.
	PodSets []AskDiagnosis `json:"podSets,omitempty"`
	// Relaxation is the smallest change to what is asked with which it would fit now;
	// empty where none that is tried helps.
	Relaxation string `json:"relaxation,omitempty"`
}

// AskDiagnosis is one pod set's part.
type AskDiagnosis struct {
	Shortfall
	// Best is the domain that could hold the most of it; nil where no node could hold a
	// pod.
	Best *Domain `json:"best,omitempty"`
}

// Domain is a domain of a topology and what it has for an ask.
type Domain struct {
	// Level is the node label, empty for the whole topology; Values are those of the
	// levels down to it.
	Level  string   `json:"level,omitempty"`
	Values []string `json:"values,omitempty"`
	// Fits is how many pods there is room for; Lacks is for how many there is not.
	Fits  int32 `json:"fits"`
	Lacks int32 `json:"lacks"`
	// Resource is what most of its nodes run out of first, empty for another reason.
	Resource string `json:"resource,omitempty"`
}
