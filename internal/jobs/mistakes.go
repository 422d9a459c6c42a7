package jobs

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

// InvalidJob is the reason of the event that says why a job is not queued, for mistakes that the API could not reject.
const InvalidJob = "InvalidJob"
