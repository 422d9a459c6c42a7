package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruleVCJob adds the rules that involve several fields of a Volcano Job. Rules that compare tasks with each other, or
// with the old object, are in an admission policy: for lists of templates the API server assumes the worst-case cost.
// So are those of policies, of which each task has a list.
func ruleVCJob(job *props) {
	edit(job, func(spec *props) {
		spec.XValidations = append(spec.XValidations, vcjobSpecRules()...)
		edit(spec, func(task *props) {
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
		celRule(".tasks", "replicas of all tasks must be at most 10000 together",
			`!has(self.tasks) || size(self.tasks) == 0 || %s <= 10000`, replicas),
		celRule(".minSuccess", "minSuccess must be at most the replicas of all tasks",
			`!has(self.minSuccess) || !has(self.tasks) || self.minSuccess <= %s`, replicas),
		celRule(".queue", "queue is immutable: create a new Job",
			`(has(self.queue) ? self.queue : '') == (has(oldSelf.queue) ? oldSelf.queue : '')`),
		celRule(".volumes", "a volume needs either volumeClaimName, of an existing claim, or volumeClaim, for a new one",
			`!has(self.volumes) || self.volumes.all(v, (has(v.volumeClaimName) && v.volumeClaimName != '') != has(v.volumeClaim))`),
	}
}
