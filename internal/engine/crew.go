package engine

func (ev PodBound) apply(e *Engine) {
	e.places.SetPod(ev.Pod)
	e.placesNews++
	if of := e.crewOf[ev.Key]; of != ev.Workload {
		e.leaveCrew(ev.Key)
		e.joinCrew(ev.Key, ev.Workload)
	}
	e.recountWithin(ev.Workload)
	e.followShrinking(ev.Workload)
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

// podLeft follows a pod that takes nothing any more.
func (e *Engine) podLeft(pod Key) {
	e.placesNews++
	of := e.crewOf[pod]
	e.leaveCrew(pod)
	e.recountWithin(of)
	e.followShrinking(of)
}

// recountWithin follows a pod of a workload that came or went.
func (e *Engine) recountWithin(of Key) {
	if w := e.workloads[of]; w != nil && w.held.isWithin() {
		e.within.Insert(of)
	}
}

// joinCrew and leaveCrew count the pods of each workload that are there.
func (e *Engine) joinCrew(pod, of Key) {
	if of == (Key{}) {
		return
	}
	e.crewOf[pod] = of
	if e.crews[of]++; e.crews[of] == 1 {
		e.settleCrew(of)
	}
}

func (e *Engine) leaveCrew(pod Key) {
	of, known := e.crewOf[pod]
	if !known {
		return
	}
	delete(e.crewOf, pod)
	if e.crews[of]--; e.crews[of] == 0 {
		delete(e.crews, of)
		e.settleCrew(of)
	}
}

// settleCrew follows the first pod of a workload that comes, or the last one that goes.
func (e *Engine) settleCrew(of Key) {
	if w := e.workloads[of]; w != nil {
		e.settlePlaces(w)
	} else if e.lingering.Has(of) && e.crews[of] == 0 {
		e.lingering.Delete(of)
		e.departing--
		e.places.Hold(of, nil)
	}
}
