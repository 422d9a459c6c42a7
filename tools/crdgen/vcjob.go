package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruleVCJob adds the rules that involve several fields of a Volcano Job. Rules that compare tasks with each other, or
// with the old object, are in an admission policy: for lists of templates the API server assumes the worst-case cost.
func ruleVCJob(job *props) {
	edit(job, func(spec *props) {
		spec.XValidations = append(spec.XValidations, vcjobSpecRules()...)
		edit(spec, rulePolicies, "policies")
		edit(spec, func(task *props) {
			edit(task, rulePolicies, "policies")
			task.XValidations = append(task.XValidations,
				celRule(".minAvailable", "minAvailable of a task must be at most its replicas",
					`!has(self.minAvailable) || self.minAvailable <= (has(self.replicas) ? self.replicas : 0)`))
		}, "tasks", "*")
	}, "spec")
}

func vcjobSpecRules() []apiextensionsv1.ValidationRule {
	const replicas = `self.tasks.map(t, has(t.replicas) ? t.replicas : 0).sum()`
	return []apiextensionsv1.ValidationRule{
		celRule(".tasks", "No task specified in job spec", `has(self.tasks) && size(self.tasks) > 0`),
		celRule(".minAvailable", "job 'minAvailable' should not be greater than total replicas in tasks",
			`!has(self.minAvailable) || !has(self.tasks) || self.minAvailable <= %s`, replicas),
		celRule(".tasks", "replicas of all tasks must be at most 10000 together", `!has(self.tasks) || size(self.tasks) == 0 || %s <= 10000`, replicas),
		celRule(".minSuccess", "minSuccess must be at most the replicas of all tasks", `!has(self.minSuccess) || !has(self.tasks) || self.minSuccess <= %s`, replicas),
		celRule(".queue", "queue is immutable: create a new Job",
			`(has(self.queue) ? self.queue : '') == (has(oldSelf.queue) ? oldSelf.queue : '')`),
		celRule(".volumes", "a volume needs either volumeClaimName, of an existing claim, or volumeClaim, for a new one",
			`!has(self.volumes) || self.volumes.all(v, (has(v.volumeClaimName) && v.volumeClaimName != '') != has(v.volumeClaim))`),
	}
}

// rulePolicies validates each policy as Volcano does.
func rulePolicies(policies *props) {
	const events = "(has(p.events) && size(p.events) > 0 || has(p.event))"
	policies.XValidations = append(policies.XValidations,
		celRule("", "a policy must specify an action", `self.all(p, has(p.action))`),
		celRule("", "a policy must specify either events or an exit code, and not both", `self.all(p, has(p.exitCode) != %s)`, events),
		celRule("", "0 is not a valid error code", `self.all(p, !has(p.exitCode) || p.exitCode != 0)`),
		celRule("", "if there's * here, no other policy should be here",
			`size(self) < 2 || !self.exists(p, has(p.event) && p.event == '*' || has(p.events) && '*' in p.events)`),
	)
}
