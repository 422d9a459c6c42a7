package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruleGenericJob adds the rules that involve several parts of a GenericJob. Rules about what finish rules refer to are
// in an admission policy: for nested lists the API server assumes the worst-case cost.
func ruleGenericJob(job *props) {
	job.XValidations = append(job.XValidations, genericJobNameRules()...)
	edit(job, func(spec *props) { spec.XValidations = append(spec.XValidations, genericJobSpecRules()...) }, "spec")
	for _, rules := range []string{"successRules", "failureRules"} {
		edit(job, boundIndices, "spec", rules, "*")
	}
	edit(job, rulePorts, "spec", "service")
}

// genericJobNameRules limit the names of pods, which are also label values, to 63 characters, and require valid names
// of Services.
func genericJobNameRules() []apiextensionsv1.ValidationRule {
	return []apiextensionsv1.ValidationRule{
		// <job>-<type>-<rank>
		celRule("", "the name of the GenericJob is too long: the names of its pods would exceed 63 characters",
			`self.spec.replicaSpecs.all(r, size(self.metadata.name) + 1 + size(r.type) + 1 + size(string(r.replicas > 0 ? r.replicas - 1 : 0)) <= 63)`),
		celRule("", "the name of a GenericJob with a service begins the names of its Services: a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit",
			`!has(self.spec.service) || !has(self.spec.service.ports) || size(self.spec.service.ports) == 0 || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`),
	}
}

func genericJobSpecRules() []apiextensionsv1.ValidationRule {
	const hasDebug = "has(self.runMode) && has(self.runMode.debug) && has(self.runMode.debug.replicaSpecs)"
	const hasResume = "has(self.runMode) && has(self.runMode.pause) && has(self.runMode.pause.resumeSpecs)"
	const hadResume = "has(oldSelf.runMode) && has(oldSelf.runMode.pause) && has(oldSelf.runMode.pause.resumeSpecs)"
	return []apiextensionsv1.ValidationRule{
		celRule(".replicaSpecs", "replicas of all types must be at most 5000 together",
			`self.replicaSpecs.map(r, r.replicas).sum() <= 5000`),
		celRule(".replicaSpecs", "types and replicas are immutable: create a new GenericJob",
			`self.replicaSpecs.map(r, r.type) == oldSelf.replicaSpecs.map(r, r.type)
			&& self.replicaSpecs.map(r, r.replicas) == oldSelf.replicaSpecs.map(r, r.replicas)`),
		celRule(".runMode.debug.replicaSpecs", "type must be one of spec.replicaSpecs",
			`!(%s) || self.runMode.debug.replicaSpecs.all(d, self.replicaSpecs.exists(r, r.type == d.type))`, hasDebug),
		celRule(".runMode.pause.resumeSpecs", "type must be one of spec.replicaSpecs",
			`!(%s) || self.runMode.pause.resumeSpecs.all(d, self.replicaSpecs.exists(r, r.type == d.type))`, hasResume),
		celRule(".runMode.pause.resumeSpecs", "resumeSpecs are immutable",
			`(%s) ? ((%s) && self.runMode.pause.resumeSpecs == oldSelf.runMode.pause.resumeSpecs) : !(%s)`, hasResume, hadResume, hadResume),
	}
}

// boundIndices requires that the indices of a finish rule are numbers, in either form.
func boundIndices(rule *props) {
	edit(rule.AdditionalProperties.Schema, func(index *props) {
		least := float64(0)
		index.Minimum, index.Pattern = &least, "^[0-9]{1,9}$"
	}, "*")
}

// rulePorts validates ports as the API server would validate those of the Services, which is too late to tell the
// author.
func rulePorts(service *props) {
	edit(service, func(port *props) {
		least, most, length := float64(1), float64(65535), int64(63)
		edit(port, func(number *props) { number.Minimum, number.Maximum = &least, &most }, "port")
		edit(port, func(name *props) {
			name.MaxLength, name.Pattern = &length, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
		}, "name")
	}, "ports", "*")
	service.XValidations = append(service.XValidations,
		celRule(".ports", "names of ports must be set and unique where there are several",
			`!has(self.ports) || size(self.ports) < 2 || self.ports.all(p, has(p.name) && self.ports.exists_one(q, has(q.name) && q.name == p.name))`))
}
