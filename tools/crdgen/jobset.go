package main

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruleJobSet adds the rules that involve several parts of a JobSet.
func ruleJobSet(jobSet *props) {
	jobSet.XValidations = append(jobSet.XValidations, nameRules()...)
	edit(jobSet, func(spec *props) {
		keepSpec(spec)
		spec.XValidations = append(spec.XValidations,
			celRule(".replicatedJobs", "replicas of all replicatedJobs must be at most 10000 together",
				`!has(self.replicatedJobs) || size(self.replicatedJobs) == 0 || self.replicatedJobs.map(r, r.replicas).sum() <= 10000`))
		spec.XValidations = append(spec.XValidations, inPlaceRules()...)
		spec.XValidations = append(spec.XValidations, coordinatorRules()...)
	}, "spec")
	edit(jobSet, func(policy *props) { policy.XValidations = append(policy.XValidations, patternRules()...) },
		"spec", "failurePolicy")
}

// orElse returns the expression of an optional field, with a value for the case that it is not set.
func orElse(field, value string) string {
	return fmt.Sprintf("(has(%[1]s) ? %[1]s : %[2]s)", field, value)
}

// nameRules limit the names derived from the JobSet's name to 63 characters. They add lengths, because the API server
// cannot bound the length of concatenated names.
func nameRules() []apiextensionsv1.ValidationRule {
	const (
		noJobs   = "!(has(self.spec) && has(self.spec.replicatedJobs))"
		lastJob  = "size(string(r.replicas > 0 ? r.replicas - 1 : 0))"
		lastPod  = "size(string(r.template.spec.completions > 0 ? r.template.spec.completions - 1 : 0))"
		indexed  = "(!has(r.template.spec.completionMode) || r.template.spec.completionMode == 'Indexed')"
		dnsLabel = "a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit"
	)
	subdomain := `(has(self.spec.network) && has(self.spec.network.subdomain) && self.spec.network.subdomain != ''
		? size(self.spec.network.subdomain) : size(self.metadata.name))`
	return []apiextensionsv1.ValidationRule{
		celRule("", "the name of a JobSet begins the names of its Jobs: "+dnsLabel,
			`%s || size(self.spec.replicatedJobs) == 0 || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`, noJobs),
		// <jobset>-<replicated job>-<job index>
		celRule("", "JobSet name is too long, job names generated for this JobSet will exceed 63 characters",
			`%s || self.spec.replicatedJobs.all(r, size(self.metadata.name) + 1 + size(r.name) + 1 + %s <= 63)`, noJobs, lastJob),
		// <jobset>-<replicated job>-<job index>-<pod index>-<five characters>
		celRule("", "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters",
			`%s || self.spec.replicatedJobs.all(r, !has(r.template.spec.completions) || !%s
				|| size(self.metadata.name) + 1 + size(r.name) + 1 + %s + 1 + %s + 6 <= 63)`, noJobs, indexed, lastJob, lastPod),
		// <jobset>-<replicated job>-<job index>-<pod index>.<subdomain>
		celRule("", "spec will lead to invalid label value for coordinator label jobset.sigs.k8s.io/coordinator"+
			" (long JobSet / ReplicatedJob / SubDomain name?): must be no more than 63 characters",
			`!(has(self.spec) && has(self.spec.coordinator))
			|| size(self.metadata.name) + 1 + size(self.spec.coordinator.replicatedJob) + 1 + size(string(%s)) + 1 + size(string(%s))
				+ 1 + %s <= 63`,
			orElse("self.spec.coordinator.jobIndex", "0"), orElse("self.spec.coordinator.podIndex", "0"), subdomain),
	}
}

func inPlaceRules() []apiextensionsv1.ValidationRule {
	const notInPlace = `!(has(self.failurePolicy) && has(self.failurePolicy.restartStrategy)
		&& self.failurePolicy.restartStrategy == 'InPlaceRestart' && has(self.replicatedJobs))`
	return []apiextensionsv1.ValidationRule{
		celRule("", "backoffLimit of every replicatedJob must be set to 2147483647 (MaxInt32) when in-place restart is enabled",
			`%s || self.replicatedJobs.all(r,
				has(r.template.spec.backoffLimit) && r.template.spec.backoffLimit == 2147483647)`, notInPlace),
		celRule("", "podReplacementPolicy of every replicatedJob must be set to Failed when in-place restart is enabled",
			`%s || self.replicatedJobs.all(r,
				has(r.template.spec.podReplacementPolicy) && r.template.spec.podReplacementPolicy == 'Failed')`, notInPlace),
		celRule("", "completions and parallelism of every replicatedJob must be set and equal to each other when in-place restart is enabled",
			`%s || self.replicatedJobs.all(r,
				has(r.template.spec.completions) && has(r.template.spec.parallelism)
				&& r.template.spec.completions == r.template.spec.parallelism)`, notInPlace),
	}
}

// coordinatorRules apply whenever the coordinator is set, since it may change at any time.
func coordinatorRules() []apiextensionsv1.ValidationRule {
	jobIndex, podIndex := orElse("self.coordinator.jobIndex", "0"), orElse("self.coordinator.podIndex", "0")
	named := celRule(".coordinator", "coordinator replicatedJob does not exist",
		`!has(self.coordinator)
		|| (has(self.replicatedJobs) && self.replicatedJobs.exists(r, r.name == self.coordinator.replicatedJob))`)
	named.MessageExpression = "'coordinator replicatedJob ' + self.coordinator.replicatedJob + ' does not exist'"
	// where returns the rule that the coordinator's replicated job, if it exists, satisfies the condition.
	where := func(message, condition string, arguments ...any) apiextensionsv1.ValidationRule {
		return celRule(".coordinator", message, `!has(self.coordinator) || !has(self.replicatedJobs)
			|| self.replicatedJobs.all(r, r.name != self.coordinator.replicatedJob || (`+condition+`))`, arguments...)
	}
	return []apiextensionsv1.ValidationRule{
		named,
		where("coordinator job index is invalid for its replicatedJob: it must be at least 0 and less than replicas",
			`%[1]s >= 0 && %[1]s < r.replicas`, jobIndex),
		where("job for coordinator pod must be indexed completion mode, and completions number must be set",
			`has(r.template.spec.completions)
				&& has(r.template.spec.completionMode) && r.template.spec.completionMode == 'Indexed'`),
		where("coordinator pod index is invalid for its replicatedJob: it must be at least 0 and less than completions",
			`!has(r.template.spec.completions) || (%[1]s >= 0 && %[1]s < r.template.spec.completions)`, podIndex),
	}
}

// patternRules bound what the patterns of failure rules cost whoever compiles them: the API server in the last of these
// rules, and the operator. A count of repetitions multiplies what it follows: 'x{1000}' 146 times, 1,022 characters, is
// a program of 146,000 instructions. So a pattern is compiled only where the rules before hold, which is why these
// repeat each other. Within them all patterns together are programs of some 6,000 instructions. A failurePolicy never
// changes, so that no later write, of a status for example, compiles its patterns again.
func patternRules() []apiextensionsv1.ValidationRule {
	const (
		patterns = "(has(r.onJobFailureMessagePatterns) ? r.onJobFailureMessagePatterns : [])"
		short    = "self.rules.map(r, " + patterns + ".map(p, size(p)).sum()).sum() <= 4096"
		single   = "self.rules.all(r, " + patterns + ".all(p, !p.matches('[)][{][0-9]|[{][0-9,]*[0-9]{3}')))"
		// A count is the last number before a closing brace.
		few = "self.rules.map(r, " + patterns +
			".map(p, p.findAll('[0-9]{1,2},?[}]').map(c, int(c.replace(',', '').replace('}', ''))).sum()).sum()).sum() <= 512"
	)
	rules := []apiextensionsv1.ValidationRule{
		celRule(".rules", "the onJobFailureMessagePatterns of all rules must have at most 4096 characters together",
			`!has(self.rules) || %s`, short),
		celRule(".rules", "a count of repetitions in onJobFailureMessagePatterns, such as {3}, must have at most two digits"+
			" and follow a single character or a class, not a group",
			`!has(self.rules) || !(%s) || %s`, short, single),
		celRule(".rules", "the counts of repetitions in onJobFailureMessagePatterns, such as {3}, must be at most 512 together",
			`!has(self.rules) || !(%s) || %s`, short, few),
		celRule(".rules", "onJobFailureMessagePatterns must be regular expressions in RE2 syntax",
			`!has(self.rules) || !(%s) || !(%s) || !(%s) || self.rules.all(r, %s.all(p, ''.matches(p) in [true, false]))`,
			short, single, few, patterns),
	}
	for i := range rules {
		rules[i] = whenFirstSet(rules[i])
	}
	return rules
}
