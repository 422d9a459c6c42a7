package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// defaultJobTemplate sets the defaults of a JobSet's templates that differ from those of a Job.
func defaultJobTemplate(template *props) {
	setDefault := func(value string) func(*props) {
		return func(field *props) { field.Default = &apiextensionsv1.JSON{Raw: []byte(value)} }
	}
	edit(template, setDefault(`"Indexed"`), "spec", "completionMode")
	edit(template, setDefault(`"OnFailure"`), "spec", "template", "spec", "restartPolicy")
}

// fixJobTemplate makes a JobSet's templates immutable, except for what rules on this project's types check: the size of
// an elastic Job, and while the JobSet is suspended the labels, annotations and node choice of its pods.
//
// There is one rule for each field instead of one for the whole template, because CEL cannot compare two objects with
// some fields excluded, and because the error then names the field.
func fixJobTemplate(template *props) {
	dropRules(template)
	fixMetadata(template)
	edit(template, func(jobSpec *props) { fixFields(jobSpec, "parallelism", "completions", "template") }, "spec")
	edit(template, func(podSpec *props) { fixFields(podSpec, "nodeSelector", "tolerations", "schedulingGates") },
		"spec", "template", "spec")
}

// dropRules removes the rules of some embedded Kubernetes types: they fix parts of what is immutable as a whole.
func dropRules(node *props) {
	node.XValidations = nil
	for name, child := range node.Properties {
		dropRules(&child)
		node.Properties[name] = child
	}
	if node.Items != nil && node.Items.Schema != nil {
		dropRules(node.Items.Schema)
	}
}

func fixMetadata(template *props) {
	edit(template, func(metadata *props) {
		for _, field := range []string{"labels", "annotations"} {
			edit(metadata, bound, field)
		}
	}, "metadata")
	for _, field := range []string{"labels", "annotations"} {
		template.XValidations = append(template.XValidations, immutable(
			fmt.Sprintf("(has(self.metadata) && has(self.metadata.%[1]s) && size(self.metadata.%[1]s) > 0)"+
				" ? (has(oldSelf.metadata) && has(oldSelf.metadata.%[1]s) && self.metadata.%[1]s == oldSelf.metadata.%[1]s)"+
				" : (!has(oldSelf.metadata) || !has(oldSelf.metadata.%[1]s) || size(oldSelf.metadata.%[1]s) == 0)", field), ""))
	}
}

func fixFields(object *props, free ...string) {
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		edit(object, bound, name)
		if !slices.Contains(free, name) {
			object.XValidations = append(object.XValidations, immutable(sameField(name, object.Properties[name]), "."+name))
		}
	}
}

// fixNodeChoice makes the labels, annotations and node choice of pod templates immutable, unless the JobSet is or
// becomes suspended. The rules are on the spec, because only there is suspend in scope.
func fixNodeChoice(spec *props) {
	for _, field := range []string{"metadata.labels", "metadata.annotations", "spec.nodeSelector", "spec.tolerations", "spec.schedulingGates"} {
		spec.XValidations = append(spec.XValidations, celRule("", "field is immutable while the JobSet is not suspended: "+field+" of a pod template changed",
			`(has(self.suspend) && self.suspend) || (has(oldSelf.suspend) && oldSelf.suspend)
			|| !has(self.replicatedJobs) || !has(oldSelf.replicatedJobs)
			|| size(self.replicatedJobs) != size(oldSelf.replicatedJobs)
			|| self.replicatedJobs.map(r, %[1]s ? [r.template.spec.template.%[2]s] : [])
				== oldSelf.replicatedJobs.map(r, %[1]s ? [r.template.spec.template.%[2]s] : [])`,
			present("r.template.spec.template", field), field))
	}
}

// present returns the expression that a field of a pod template is set. The template always has a spec.
func present(template, field string) string {
	if parent, _, _ := strings.Cut(field, "."); parent == "metadata" {
		return fmt.Sprintf("has(%[1]s.metadata) && has(%[1]s.%[2]s)", template, field)
	}
	return fmt.Sprintf("has(%s.%s)", template, field)
}

func immutable(rule, path string) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{Rule: rule, Message: "field is immutable", FieldPath: path}
}

// maxSize limits each list, map and string of a template, one level deep: the API server refuses a rule that compares
// unbounded values in each of many templates. Real Jobs are far below.
const maxSize int64 = 1024

func bound(field *props) {
	size := maxSize
	switch {
	case field.Type == "array" && field.MaxItems == nil:
		field.MaxItems = &size
	case field.Type == "object" && field.AdditionalProperties != nil && field.MaxProperties == nil:
		field.MaxProperties = &size
	case field.Type == "string" && field.MaxLength == nil && len(field.Enum) == 0:
		field.MaxLength = &size
	}
}

// sameField returns the rule that a field is unchanged. Clients with Go types omit empty values, so for lists, maps,
// strings and booleans that are not pointers, empty and absent are equal.
func sameField(name string, field props) string {
	switch {
	case field.Type == "array", field.Type == "string", field.Type == "object" && field.AdditionalProperties != nil:
		rule := fmt.Sprintf("(has(self.%[1]s) && size(self.%[1]s) > 0) ? (has(oldSelf.%[1]s) && self.%[1]s == oldSelf.%[1]s)"+
			" : (!has(oldSelf.%[1]s) || size(oldSelf.%[1]s) == 0)", name)
		// CEL compares lists that have keys as sets, but containers start in their order.
		if name == "containers" || name == "initContainers" {
			rule = fmt.Sprintf("(%s) && (!has(self.%[2]s) || !has(oldSelf.%[2]s) ||"+
				" self.%[2]s.map(c, c.name) == oldSelf.%[2]s.map(c, c.name))", rule, name)
		}
		return rule
	case slices.Contains([]string{"hostIPC", "hostNetwork", "hostPID"}, name):
		return fmt.Sprintf("(has(self.%[1]s) && self.%[1]s) == (has(oldSelf.%[1]s) && oldSelf.%[1]s)", name)
	default:
		return sameOptional("self", "oldSelf", name)
	}
}
