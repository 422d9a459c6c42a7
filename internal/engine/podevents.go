package engine

func (p PodBound) apply(e *Engine) {
	e.places.SetPod(p.Pod)
	e.placesVersion++
	if of := e.workloadOfPod[p.Key]; of != p.Workload {
		e.uncountPod(p.Key)
		e.countPod(p.Key, p.Workload)
	}
	e.recountWithin(p.Workload)
	e.updateShrinking(p.Workload)
}

func (p PodGone) apply(e *Engine) {
	if e.places.DeletePod(p.Key) {
		e.podLeft(p.Key)
	}
}

func (p PodEnded) apply(e *Engine) {
	if e.places.EndPod(p.Key, p.Of) {
		e.podLeft(p.Key)
	}
}

// podLeft updates the state after a pod stopped using capacity.
func (e *Engine) podLeft(pod Key) {
	e.placesVersion++
	of := e.workloadOfPod[pod]
	e.uncountPod(pod)
	e.recountWithin(of)
	e.updateShrinking(of)
}

// recountWithin schedules a recount of the nodes used by a workload whose admission names domains only.
func (e *Engine) recountWithin(of Key) {
	if w := e.workloads[of]; w != nil && w.held.isWithin() {
		e.within.Insert(of)
	}
}

// countPod and uncountPod keep the number of existing pods of each workload.
func (e *Engine) countPod(pod, of Key) {
	if of == (Key{}) {
		return
	}
	e.workloadOfPod[pod] = of
	if e.podCounts[of]++; e.podCounts[of] == 1 {
		e.podCountChanged(of)
	}
}

func (e *Engine) uncountPod(pod Key) {
	of, known := e.workloadOfPod[pod]
	if !known {
		return
	}
	delete(e.workloadOfPod, pod)
	if e.podCounts[of]--; e.podCounts[of] == 0 {
		delete(e.podCounts, of)
		e.podCountChanged(of)
	}
}

// podCountChanged updates places when the first pod of a workload appears, or the last one is gone.
func (e *Engine) podCountChanged(of Key) {
	if w := e.workloads[of]; w != nil {
		e.updatePlaces(w)
	} else if e.lingering.Has(of) && e.podCounts[of] == 0 {
		e.lingering.Delete(of)
		e.departing--
		e.places.Hold(of, nil)
	}
}
