package main

import (
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

// boundJobTemplate limits each list, map and string of a JobSet's templates, one level deep: the policy
// muster-jobset-immutable compares all of them.
func boundJobTemplate(template *props) {
	dropRules(template)
	boundFields := func(object *props) {
		for name := range object.Properties {
			edit(object, bound, name)
		}
	}
	edit(template, bound, "metadata", "labels")
	edit(template, bound, "metadata", "annotations")
	edit(template, boundFields, "spec")
	edit(template, boundFields, "spec", "template", "spec")
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

// maxSize is the limit of boundJobTemplate. Real Jobs are far below.
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
