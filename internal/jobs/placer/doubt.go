package placer

import (
	corev1 "k8s.io/api/core/v1"
)

// A pod without a rank may take any free place, but not all of them may be good. The places of pods that have succeeded
// stay in the assignment, though others may have been given their capacity since, and are not moved when their node is
// lost: nobody needs them. Only as many places as pods are missing are known to be good, and those come first.

// rateDoubts notes what makes free places of the group doubtful, given the pods of it that have succeeded.
func (r *groupPlaces) rateDoubts(succeeded []*corev1.Pod, known nodes) {
	for _, pod := range succeeded {
		if d := r.domainOf(nodeLabelsOf(pod, known)); d != nil {
			d.succeeded++
		}
	}
	for _, d := range r.domains {
		if node := d.place.Node(); node != "" && d.free() {
			d.closed = !known.open(node)
		}
	}
}

// doubt ranks domains with a free place by how likely it is not to be good.
func (d *domain) doubt() int {
	switch {
	case d.closed:
		return 2
	case int32(len(d.live))+d.terminating+d.succeeded >= d.size:
		return 1
	}
	return 0
}
