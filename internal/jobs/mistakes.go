package jobs

import "github.com/musterhq/muster/internal/jobs/write"

// Mistake returns an Obstacle about a field of the job that can be corrected.
func Mistake(problem string) *write.Event {
	event := write.Obstacle(InvalidJob, problem)
	event.Correctable = true
	return &event
}

// ImmutableMistake returns an Obstacle about an immutable field of the job.
func ImmutableMistake(problem string) *write.Event {
	event := write.Obstacle(InvalidJob, problem)
	event.Immutable = true
	return &event
}

// InvalidJob is the reason of the event that says why a job is not queued, for mistakes that the API could not reject.
const InvalidJob = "InvalidJob"
