package engine

const (
	// hopeless: nothing at present.
	hopeless verdict = iota
	// admissible: it fits.
	admissible
	// nominable: it fits once workloads that are already being evicted are gone.
	nominable
	// preempting: it fits once its victims are gone.
	preempting
)

// verdict is what can be done for a workload.
type verdict int
