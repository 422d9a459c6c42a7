package jobs

import "sigs.k8s.io/controller-runtime/pkg/client"

// mistakesOf are what keeps the job from being queued as it is: what its API says, and what
// all of them have in common. One that has come to be so after the job got its Workload changes nothing of that.
func mistakesOf(job client.Object, described Description, priorities PriorityFacts, hasWorkload bool) (out []Event) {
	_, mistake := requestOf(job, priorities)
	for _, m := range []*Event{described.Mistake, mistake, speedMistake(described.PodSets)} {
		if m != nil {
			out = append(out, m.withConsequence(hasWorkload))
		}
	}
	return out
}

// Mistake is an Obstacle of something that the job says, and may say otherwise.
func Mistake(problem string) *Event {
	event := Obstacle(InvalidJob, problem)
	event.Mendable = true
	return &event
}

// FixedMistake is an Obstacle of something that the job says, and cannot say otherwise.
func FixedMistake(problem string) *Event {
	event := Obstacle(InvalidJob, problem)
	event.Fixed = true
	return &event
}

// withConsequence is the event with what follows of a mistake: a job that has a Workload goes by it, whether it waits or runs.
// One that says for good what is wrong may have it of an operator that did not know.
func (e Event) withConsequence(hasWorkload bool) Event {
	switch {
	case e.Fixed && hasWorkload:
		e.Message += ". What a Job says of this is fixed: this one stays in the queue, or runs, as it is"
	case e.Fixed:
		e.Message += ". The job is not queued: what a Job says of this is fixed, so delete it and make another"
	case !e.Mendable:
	case hasWorkload:
		e.Message += ". Until then the job goes by what it said before"
	default:
		e.Message += ". The job is not queued until then"
	}
	e.Mendable, e.Fixed = false, false
	return e
}
