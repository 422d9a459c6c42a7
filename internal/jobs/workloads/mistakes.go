package workloads

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// Mistake says, for users, why the job is not queued as it is, "" if it is. A mistake made after the job got its
// Workload has no effect.
func (j Job) Mistake(s State) string {
	if mistakes := mistakesOf(j.Object, s.Described, s.Facts.Priorities, false); s.Own == nil && len(mistakes) > 0 {
		return mistakes[0].Message
	}
	return ""
}

// mistakesOf returns what keeps the job from being queued: mistakes found by its API, and mistakes common to all APIs.
// If the job already has a Workload, a new mistake does not affect it.
func mistakesOf(job client.Object, described jobs.Description, priorities jobs.PriorityFacts,
	hasWorkload bool) (out []write.Event) {
	_, mistake := requestOf(job, priorities)
	for _, m := range []*write.Event{described.Mistake, mistake, speedMistake(described.PodSets)} {
		if m != nil {
			out = append(out, withConsequence(*m, hasWorkload))
		}
	}
	return out
}

// withConsequence returns the event with what follows from the mistake added to its message: a job that has a Workload
// keeps to it, whether it waits or runs. A job with an immutable mistake can have a Workload if an operator that did
// not know the mistake made it.
func withConsequence(e write.Event, hasWorkload bool) write.Event {
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

// speedMistake returns what is wrong with the speed exponent of an elastic pod set, nil if nothing is.
func speedMistake(podSets []kueue.PodSet) *write.Event {
	for podSet := range pointers.To(podSets) {
		if !jobs.IsElasticTemplate(&podSet.Template) {
			continue
		}
		if _, err := podspec.SpeedExponent(podSet.Template.Annotations); err != nil {
			return jobs.Mistake(fmt.Sprintf("Pod set %s: %v", podSet.Name, err))
		}
	}
	return nil
}
