package jobset

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// wantsAgent reports whether the pods of a replicated job are to have an agent round
// their command: as the replicated job says, or else the JobSet.
func wantsAgent(js *jobset.JobSet, rj *jobset.ReplicatedJob) bool {
	value, said := rj.Template.Annotations[muster.InjectAgentAnnotation]
	if !said {
		value = js.Annotations[muster.InjectAgentAnnotation]
	}
	wants, _ := strconv.ParseBool(value)
	return wants
}

// round is in which rounds the agents of a JobSet take part. One that restarts in place
// counts its rounds, and its failures, in its status. Of another all pods with an agent
// are one round.
func round(js *jobset.JobSet) podspec.Round {
	if inPlace(js) {
		return podspec.Round{Index: -1, MaxRestarts: ptr.To[int32](-1)}
	}
	var pods int32
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; wantsAgent(js, rj) {
			pods += podCount(rj)
		}
	}
	return podspec.Round{ID: string(js.UID), Min: pods, Max: pods, Index: -1}
}

// withAgent is the template with the agent that it wants. Where that cannot be no Job is made of it; see agentsFit.
func (a *attempt) withAgent(rj *jobset.ReplicatedJob, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if !wantsAgent(a.js, rj) {
		return template
	}
	out, err := a.seen.Facts.Agent.Inject(template, round(a.js))
	if err != nil {
		return template
	}
	return out
}

// agentsFit tells people if an agent cannot be put where it was asked for. Without it
// pods would run alone that are to run together, so nothing is made then.
func (a *attempt) agentsFit() bool {
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if !wantsAgent(a.js, rj) {
			continue
		}
		if _, err := a.seen.Facts.Agent.Inject(rj.Template.Spec.Template, round(a.js)); err != nil {
			a.plan.Events = append(a.plan.Events, jobs.Warning(jobset.JobCreationFailedReason, fmt.Sprintf("replicated job %s: %v", rj.Name, err)))
			a.due(a.seen.Now.Add(patience))
			return false
		}
	}
	return true
}
