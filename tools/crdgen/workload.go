package main

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ruleWorkload adds the rules over a Workload's spec and status together.
func ruleWorkload(workload *props) {
	workload.XValidations = append(workload.XValidations, admissionRules()...)
	workload.XValidations = append(workload.XValidations, reservedRules()...)
	workload.XValidations = append(workload.XValidations, reportRules()...)
}

// admissionRules say what an admission may be.
func admissionRules() []apiextensionsv1.ValidationRule {
	return []apiextensionsv1.ValidationRule{
		celRule(".status", "must be set while the QuotaReserved condition is true",
			`!(%s) || has(self.status.admission)`, isTrue("self", "QuotaReserved")),
		celRule("", "podSetAssignments must have the same number of podSets as the spec",
			`!(%s)
			|| !has(self.status.admission)
			|| size(self.spec.podSets) == size(self.status.admission.podSetAssignments)`, isTrue("self", "QuotaReserved")),
		celRule(".status.admission", "podSetAssignments must name pod sets of the spec",
			`!(has(self.status) && has(self.status.admission))
			|| self.status.admission.podSetAssignments.all(a, self.spec.podSets.exists(p, p.name == a.name))`),
		// Pods that have ended and given their quota back are not asked for again. The name and the number of pods that are
		// lacking are lists of one item, so that they are reckoned once: with the bounds of the lists, three deep, the
		// API server would refuse the rule for its cost otherwise.
		celRule(".status.admission", "count of an assignment must be between minCount and count of the pod set",
			`!(has(self.status) && has(self.status.admission))
			|| (has(oldSelf.status) && has(oldSelf.status.admission) && self.status.admission == oldSelf.status.admission)
			|| self.status.admission.podSetAssignments.all(a, !has(a.count)
				|| [a.name].all(name, self.spec.podSets.exists(p, p.name == name && a.count <= p.count
					&& [(has(p.minCount) ? p.minCount : p.count) - a.count].all(lacking, lacking <= 0
						|| (has(self.status.reclaimablePods)
							&& self.status.reclaimablePods.exists(r, r.name == name && r.count >= lacking))))))`),
	}
}

// reservedRules say what stays as it is while quota is reserved, before the write and after it.
func reservedRules() []apiextensionsv1.ValidationRule {
	reserved := isTrue("oldSelf", "QuotaReserved") + " && " + isTrue("self", "QuotaReserved")
	admitted := isTrue("oldSelf", "Admitted") + " && " + isTrue("self", "Admitted")
	const fixed = "field is immutable while quota is reserved"
	return []apiextensionsv1.ValidationRule{
		celRule(".spec.podSets", fixed,
			`!(%s)
			|| (self.spec.podSets.map(p, p.name) == oldSelf.spec.podSets.map(p, p.name)
				&& self.spec.podSets.map(p, p.template) == oldSelf.spec.podSets.map(p, p.template))`, reserved),
		celRule(".spec.podSets", fixed,
			`!(%s)
			|| size(self.spec.podSets) != size(oldSelf.spec.podSets)
			|| self.spec.podSets.all(i, p, (%s) && (%s))`,
			reserved, sameOptional("p", "oldSelf.spec.podSets[i]", "minCount"), sameOptional("p", "oldSelf.spec.podSets[i]", "topologyRequest")),
		// An elastic job may shrink: the policy muster-workload-pod-sets sees whether a job is one.
		celRule(".spec.podSets", "count cannot grow while quota is reserved: field is immutable",
			`!(%s)
			|| size(self.spec.podSets) != size(oldSelf.spec.podSets)
			|| self.spec.podSets.all(i, p, p.count <= oldSelf.spec.podSets[i].count)`, reserved),
		celRule(".spec.queueName", fixed,
			`!(%s) || (%s)`, reserved, sameOptional("self.spec", "oldSelf.spec", "queueName")),
		celRule(".spec.priorityClassSource", fixed,
			`!(%s) || (%s)`, reserved, sameOptional("self.spec", "oldSelf.spec", "priorityClassSource")),
		celRule(".spec.priorityClassName", fixed,
			`!(%s)
			|| (%s)
			|| (has(self.spec.priorityClassName) && has(oldSelf.spec.priorityClassName) && has(self.spec.priorityClassSource)
				&& self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass')`,
			reserved, sameOptional("self.spec", "oldSelf.spec", "priorityClassName")),
		celRule(".spec.maximumExecutionTimeSeconds", "maximumExecutionTimeSeconds is immutable while admitted",
			`!(%s) || (%s)`, admitted, sameOptional("self.spec", "oldSelf.spec", "maximumExecutionTimeSeconds")),
	}
}

// reportRules say what controllers may report of a Workload.
func reportRules() []apiextensionsv1.ValidationRule {
	return []apiextensionsv1.ValidationRule{
		celRule(".status.reclaimablePods", "reclaimablePods must name pod sets of the spec",
			`!(has(self.status) && has(self.status.reclaimablePods))
			|| self.status.reclaimablePods.all(r, self.spec.podSets.exists(p, p.name == r.name))`),
		// What was reported is not looked at again when an elastic job shrinks below it.
		celRule(".status.reclaimablePods", "count should be less or equal to the count of the pod set",
			`!(has(self.status) && has(self.status.reclaimablePods))
			|| (has(oldSelf.status) && has(oldSelf.status.reclaimablePods)
				&& self.status.reclaimablePods == oldSelf.status.reclaimablePods)
			|| self.status.reclaimablePods.all(r, self.spec.podSets.exists(p, p.name == r.name && r.count <= p.count))`),
		celRule(".status.admissionChecks", "podSetUpdates must name pod sets of the spec",
			`!(has(self.status) && has(self.status.admissionChecks))
			|| self.status.admissionChecks.all(c, !has(c.podSetUpdates)
				|| c.podSetUpdates.all(u, self.spec.podSets.exists(p, p.name == u.name)))`),
		celRule(".status", "clusterName must be one of the nominatedClusterNames",
			`!(has(self.status) && has(self.status.clusterName))
			|| (has(oldSelf.status) && has(oldSelf.status.clusterName))
			|| (has(oldSelf.status) && has(oldSelf.status.nominatedClusterNames)
				&& self.status.clusterName in oldSelf.status.nominatedClusterNames)`),
	}
}

// celRule makes a rule from a text whose line breaks and tabs are for people, and its arguments as fmt has them.
func celRule(path, message, text string, arguments ...any) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:      strings.Join(strings.Fields(fmt.Sprintf(text, arguments...)), " "),
		Message:   message,
		FieldPath: path,
	}
}

// isTrue is the expression that an object has a condition that is True.
func isTrue(object, condition string) string {
	return fmt.Sprintf("has(%[1]s.status) && has(%[1]s.status.conditions)"+
		" && %[1]s.status.conditions.exists(c, c.type == '%[2]s' && c.status == 'True')", object, condition)
}

// sameOptional is the expression that a field is in both objects, and equal, or in neither.
func sameOptional(object, old, field string) string {
	return fmt.Sprintf("has(%[1]s.%[3]s) == has(%[2]s.%[3]s) && (!has(%[1]s.%[3]s) || %[1]s.%[3]s == %[2]s.%[3]s)", object, old, field)
}
