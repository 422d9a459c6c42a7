package engine

func (p PodBound) apply(e *Engine) {
	e.nodes.places.SetPod(p.Pod)
	e.nodes.placesVersion++
	if of := e.nodes.workloadOfPod[p.Key]; of != p.Workload {
		e.nodes.uncountPod(p.Key)
		e.nodes.countPod(p.Key, p.Workload)
	}
	e.nodes.recountWithin(p.Workload)
	e.nodes.updateShrinking(p.Workload)
}

func (p PodGone) apply(e *Engine) {
	if e.nodes.places.DeletePod(p.Key) {
		e.nodes.podLeft(p.Key)
	}
}

func (p PodEnded) apply(e *Engine) {
	if e.nodes.places.EndPod(p.Key, p.Of) {
		e.nodes.podLeft(p.Key)
	}
}

// podLeft updates the state after a pod stopped using capacity.
func (n *nodes) podLeft(pod Key) {
	n.placesVersion++
	of := n.workloadOfPod[pod]
	n.uncountPod(pod)
	n.recountWithin(of)
	n.updateShrinking(of)
}

// recountWithin schedules a recount of the nodes used by a workload whose admission names domains only.
func (n *nodes) recountWithin(of Key) {
	if w := n.workloads[of]; w != nil && w.held.IsWithin() {
		n.within.Insert(of)
	}
}

// countPod and uncountPod keep the number of existing pods of each workload.
func (n *nodes) countPod(pod, of Key) {
	if of == (Key{}) {
		return
	}
	n.workloadOfPod[pod] = of
	if n.podCounts[of]++; n.podCounts[of] == 1 {
		n.podCountChanged(of)
	}
}

func (n *nodes) uncountPod(pod Key) {
	of, known := n.workloadOfPod[pod]
	if !known {
		return
	}
	delete(n.workloadOfPod, pod)
	if n.podCounts[of]--; n.podCounts[of] == 0 {
		delete(n.podCounts, of)
		n.podCountChanged(of)
	}
}

// podCountChanged updates places when the first pod of a workload appears, or the last one is gone.
func (n *nodes) podCountChanged(of Key) {
	if w := n.workloads[of]; w != nil {
		n.updatePlaces(w)
	} else if n.lingering.Has(of) && n.podCounts[of] == 0 {
		n.lingering.Delete(of)
		n.departing--
		n.places.Hold(of, nil)
	}
}
