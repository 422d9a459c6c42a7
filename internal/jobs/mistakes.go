package jobs

import "sigs.k8s.io/controller-runtime/pkg/client"

// mistakesOf returns what keeps the job from being queued: mistakes found by its API, and those common to all APIs. If
// the job already has a Workload, a new mistake does not affect it.
func mistakesOf(job client.Object, described Description, priorities PriorityFacts, hasWorkload bool) (out []Event) {
	_, mistake := requestOf(job, priorities)
	for _, m := range []*Event{described.Mistake, mistake, speedMistake(described.PodSets)} {
		if m != nil {
			out = append(out, m.withConsequence(hasWorkload))
		}
	}
	return out
}

// Mistake returns an Obstacle about a field of the job that can be corrected.
func Mistake(problem string) *Event {
	event := Obstacle(InvalidJob, problem)
	event.Correctable = true
	return &event
}

// ImmutableMistake returns an Obstacle about an immutable field of the job.
func ImmutableMistake(problem string) *Event {
	event := Obstacle(InvalidJob, problem)
	event.Immutable = true
	return &event
}

// withConsequence returns the event with what follows from the mistake added to its message: a job that has a Workload
// keeps to it, whether it waits or runs. A job with an immutable mistake can have a Workload if an operator that did
// not know the mistake made it.
func (e Event) withConsequence(hasWorkload bool) Event {
	switch {
	case e.Immutable && hasWorkload:
		e.Message += ". This part of a Job is immutable: the job stays in the queue, or runs, as it is"
	case e.Immutable:
		e.Message += ". The job is not queued: this part of a Job is immutable, so delete it and create another"
	case !e.Correctable:
	case hasWorkload:
		e.Message += ". Until this is corrected the job keeps its previous settings"
	default:
		e.Message += ". The job is not queued until this is corrected"
	}
	e.Correctable, e.Immutable = false, false
	return e
}
