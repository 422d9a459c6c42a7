package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruleTrainingJob adds the rules that involve several parts of a TrainingJob. Invalid sizes are not refused but lead to
// a stage of the job, as users of the API expect.
func ruleTrainingJob(job *props) {
	job.XValidations = append(job.XValidations,
		// <job>-worker-<index>, which names a Service too.
		celRule("", "the name of the TrainingJob is too long: the names of its pods would exceed 63 characters",
			`size(self.metadata.name) + size('-worker-') + size(string(has(self.spec.maxSize) && self.spec.maxSize > 0
			? self.spec.maxSize - 1 : (has(self.spec.minSize) && self.spec.minSize > 0 ? self.spec.minSize - 1 : 0))) <= 63`),
		celRule("", "the name of a TrainingJob begins the names of its Services: a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit",
			`self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`))
	edit(job, func(spec *props) { spec.XValidations = append(spec.XValidations, trainingJobSpecRules()...) }, "spec")
	edit(job, func(policy *props) {
		policy.XValidations = append(policy.XValidations,
			celRule(".managedBy", "field is immutable", "%s", sameOptional("self", "oldSelf", "managedBy")))
	}, "spec", "runPolicy")
}

func trainingJobSpecRules() []apiextensionsv1.ValidationRule {
	const containers = "self.replicaSpecs.template.spec.containers"
	return []apiextensionsv1.ValidationRule{
		celRule(".replicaSpecs.template.spec.containers", "must have a container",
			`size(%s) > 0`, containers),
		// The agent does not know the command of an image.
		celRule(".replicaSpecs.template.spec.containers",
			"injectLattice needs an explicit command in the container trainingjob, or in the first if none has that name",
			`!has(self.injectLattice) || !self.injectLattice || (%[1]s.exists(c, c.name == 'trainingjob')
			? %[1]s.exists(c, c.name == 'trainingjob' && has(c.command) && size(c.command) > 0)
			: size(%[1]s) > 0 && has(%[1]s[0].command) && size(%[1]s[0].command) > 0)`, containers),
	}
}
