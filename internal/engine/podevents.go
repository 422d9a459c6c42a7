package engine

func (ev PodBound) apply(e *Engine) {
	e.places.SetPod(ev.Pod)
	e.placesVersion++
	if of := e.workloadOfPod[ev.Key]; of != ev.Workload {
		e.uncountPod(ev.Key)
		e.countPod(ev.Key, ev.Workload)
	}
	e.recountWithin(ev.Workload)
	e.updateShrinking(ev.Workload)
}

func (ev PodGone) apply(e *Engine) {
	if e.places.DeletePod(ev.Key) {
		e.podLeft(ev.Key)
	}
}

func (ev PodEnded) apply(e *Engine) {
	if e.places.EndPod(ev.Key, ev.Of) {
		e.podLeft(ev.Key)
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
