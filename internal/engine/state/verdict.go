package state

const (
	// hopeless: nothing at present.
	Hopeless Verdict = iota
	// admissible: it fits.
	Admissible
	// nominable: it fits once workloads that are already being evicted are gone.
	Nominable
	// preempting: it fits once its victims are gone.
	Preempting
)

// Verdict is what can be done for a workload.
type Verdict int
