package jobset

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	var least, most int32
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; wantsAgent(js, rj) {
			b := boundsOf(js, rj)
			least, most = least+b.Least, most+b.Most
		}
	}
	return podspec.Round{ID: string(js.UID), Min: least, Max: most, Index: -1}
}

// withAgent is the template with the agent that it wants. Where that cannot be no Job is started
// from it; see agentsFit.
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

// noAgent is why an agent cannot be put where it was asked for, "" if it can. Without it
// pods would run alone that are to run together, so none are started then.
func noAgent(js *jobset.JobSet, agent podspec.Agent) string {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if !wantsAgent(js, rj) {
			continue
		}
		if _, err := agent.Inject(rj.Template.Spec.Template, round(js)); err != nil {
			return fmt.Sprintf("The agent that %s asks for cannot be added to the pods of %s: %v. No pods are started until then", muster.InjectAgentAnnotation, rj.Name, err)
		}
	}
	return ""
}

// cannotStart is why no more pods can be started, "" if they can or all Jobs have been: an
// agent that is in a pod already needs nobody to add it.
func (a *attempt) cannotStart() string {
	started := int32(0)
	for _, job := range a.children.current() {
		if !suspended(job) {
			started++
		}
	}
	for i := range a.js.Spec.ReplicatedJobs {
		started -= a.js.Spec.ReplicatedJobs[i].Replicas
	}
	if started >= 0 {
		return ""
	}
	return noAgent(a.js, a.seen.Facts.Agent)
}

// agentsFit reports whether pods may be started as far as their agents are concerned. A
// condition says why not.
func (a *attempt) agentsFit() bool {
	why := a.cannotStart()
	if why == "" {
		a.turnOff(muster.CannotStartCondition, muster.MayStartReason, muster.MayStartMessage)
		return true
	}
	a.set(muster.CannotStartCondition, metav1.ConditionTrue, jobs.InvalidJob, why, corev1.EventTypeWarning)
	return false
}
