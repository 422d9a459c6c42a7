package jobset

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// wantsAgent reports whether the agent is to be added to the pods of a replicated job. The annotation of the replicated
// job takes precedence over that of the JobSet.
func wantsAgent(js *jobset.JobSet, rj *jobset.ReplicatedJob) bool {
	value, isSet := rj.Template.Annotations[muster.InjectAgentAnnotation]
	if !isSet {
		value = js.Annotations[muster.InjectAgentAnnotation]
	}
	wants, _ := strconv.ParseBool(value)
	return wants
}

// round returns in which rounds the agents of a JobSet take part. A JobSet that restarts in place counts its attempts
// and failures in its status. In any other JobSet, all pods with an agent form one round.
func round(js *jobset.JobSet) podspec.Round {
	if inPlace(js) {
		return podspec.Round{Index: -1, MaxRestarts: ptr.To[int32](-1)}
	}
	var least, most int32
	for rj := range pointers.To(js.Spec.ReplicatedJobs) {
		if wantsAgent(js, rj) {
			b := boundsOf(js, rj)
			least, most = least+b.Least, most+b.Most
		}
	}
	return podspec.Round{ID: string(js.UID), Min: least, Max: most, Index: -1}
}

// withAgent returns the template with the agent that it wants. If the agent cannot be added, it returns the template
// unchanged, and canStart keeps the Job from being started.
func (v *view) withAgent(rj *jobset.ReplicatedJob, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if !wantsAgent(v.js, rj) {
		return template
	}
	out, err := v.seen.Facts.Agent.Inject(template, round(v.js))
	if err != nil {
		return template
	}
	return out
}

// trainerGroup is the API group of Kubeflow's Trainer, whose TrainJobs run as JobSets.
const trainerGroup = "trainer.kubeflow.org"

// letReport returns the template with what its pods need to report their progress, if they are to. Those of a TrainJob
// report to Trainer.
func (v *view) letReport(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if owner := metav1.GetControllerOfNoCopy(v.js); owner != nil && owner.Kind == "TrainJob" &&
		strings.HasPrefix(owner.APIVersion, trainerGroup+"/") {
		return template
	}
	return v.seen.Facts.Agent.LetReport(template, v.js.Namespace, v.js.Name)
}

// noAgent says why an agent that was asked for cannot be added, "" if it can. No pods are started then, because without
// agents they would run alone instead of together.
func noAgent(js *jobset.JobSet, agent podspec.Agent) string {
	for rj := range pointers.To(js.Spec.ReplicatedJobs) {
		if !wantsAgent(js, rj) {
			continue
		}
		if _, err := agent.Inject(rj.Template.Spec.Template, round(js)); err != nil {
			return fmt.Sprintf("The agent that %s asks for cannot be added to the pods of %s: %v. No pods are started until then",
				muster.InjectAgentAnnotation, rj.Name, err)
		}
	}
	return ""
}

// cannotStart says why no more pods can be started, "" if they can, or if all Jobs have been started: agents in
// existing pods are not affected.
func (v *view) cannotStart() string {
	if why := tooLarge(v.js); why != "" {
		return why
	}
	started := int32(0)
	for _, job := range v.children.current() {
		if !suspended(job) || jobs.HasEnded(job) { // it may have been suspended before its end was observed
			started++
		}
	}
	for rj := range pointers.To(v.js.Spec.ReplicatedJobs) {
		started -= rj.Replicas
	}
	if started >= 0 {
		return ""
	}
	return noAgent(v.js, v.seen.Facts.Agent)
}

// canStart reports whether pods may be started as far as the number of Jobs and their agents are concerned. If not, a
// condition says why.
func (r *reporter) canStart() bool {
	why := r.cannotStart()
	if why == "" {
		if c := meta.FindStatusCondition(r.js.Status.Conditions, muster.CannotStartCondition); c != nil &&
			c.Reason != muster.RefusedReason {
			r.clearCondition(muster.CannotStartCondition, muster.MayStartReason, muster.MayStartMessage)
		}
		return true
	}
	r.setCondition(muster.CannotStartCondition, metav1.ConditionTrue, jobs.InvalidJob, why, corev1.EventTypeWarning)
	return false
}
