package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type props = apiextensionsv1.JSONSchemaProps

// amend changes the schema of a kind where markers on this project's types cannot.
func amend(kind string, root *props) {
	dropForeignProse(root)
	boundQuantities(root)
	for name, field := range root.Properties {
		if name != "status" {
			readable(&field)
			root.Properties[name] = field
		}
	}
	switch kind {
	case "ClusterQueue", "Cohort":
		edit(root, boundResourceNames, "spec", "resourceGroups", "*")
	case "LocalQueue":
		edit(root, keepSpec, "spec")
	case "ResourceFlavor":
		edit(root, keepSpec, "spec")
		edit(root, func(labels *props) {
			length := int64(63)
			labels.AdditionalProperties.Schema.MaxLength = &length
		}, "spec", "nodeLabels")
		for _, list := range []string{"nodeTaints", "tolerations"} {
			edit(root, boundTaint, "spec", list, "*")
		}
	case "Workload":
		// Schema only, no rules: the API server would evaluate rules on the spec at each write of the status, and most
		// writes of a Workload are those. Its rules are admission policies instead.
		edit(root, amendTemplate, "spec", "podSets", "*", "template")
	case "JobSet":
		ruleJobSet(root)
		edit(root, func(jobTemplate *props) {
			requireSpec(jobTemplate)
			edit(jobTemplate, amendTemplate, "spec", "template")
			defaultJobTemplate(jobTemplate)
			boundJobTemplate(jobTemplate)
		}, "spec", "replicatedJobs", "*", "template")
		edit(root, amendClaim, "spec", "volumeClaimPolicies", "*", "templates", "*")
	case "GenericJob":
		ruleGenericJob(root)
		edit(root, amendTemplate, "spec", "replicaSpecs", "*", "template")
	case "Job":
		ruleVCJob(root)
		edit(root, amendPodSpec, "spec", "tasks", "*", "template", "spec")
	case "Command":
		edit(root, nameObject, "target", "name")
	case "TrainingJob":
		ruleTrainingJob(root)
		edit(root, amendTemplate, "spec", "replicaSpecs", "template")
	}
}

// keepSpec has an optional spec always be there. Rules that compare a spec with the one before hold only where there
// are two: without a default, whoever takes the spec away could then bring another one.
func keepSpec(spec *props) {
	spec.Default = &apiextensionsv1.JSON{Raw: []byte("{}")}
}

// nameObject makes a string the name of an object.
func nameObject(name *props) {
	length := int64(253)
	name.MaxLength, name.Pattern = &length, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
}

// edit changes the schema at a path; "*" stands for the items of a list. A schema holds its fields by value, so each
// one on the path is stored back. A path that does not exist is a bug in this program.
func edit(node *props, change func(*props), path ...string) {
	if len(path) == 0 {
		change(node)
		return
	}
	if path[0] == "*" {
		edit(node.Items.Schema, change, path[1:]...)
		return
	}
	child, ok := node.Properties[path[0]]
	if !ok {
		panic(fmt.Sprintf("the schema has no field %q", path[0]))
	}
	edit(&child, change, path[1:]...)
	node.Properties[path[0]] = child
}

// eachChild changes the schemas right below this one: of its fields, of its items, and of the values of a map.
func eachChild(node *props, change func(*props)) {
	for name, child := range node.Properties {
		change(&child)
		node.Properties[name] = child
	}
	if node.Items != nil && node.Items.Schema != nil {
		change(node.Items.Schema)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		change(node.AdditionalProperties.Schema)
	}
}

// foreign are the fields of any kind whose contents are Kubernetes types. Their descriptions are dropped: Kubernetes
// documents them, and the API server refuses CRDs of several megabytes.
var foreign = map[string]bool{
	"template": true, "templates": true, "conditions": true, "nodeTaints": true, "tolerations": true,
	"namespaceSelector": true, "ports": true, "volumeClaim": true,
}

func dropForeignProse(node *props) {
	for name, child := range node.Properties {
		if foreign[name] {
			own := child.Description
			dropProse(&child)
			child.Description = own
		} else {
			dropForeignProse(&child)
		}
		node.Properties[name] = child
	}
	if node.Items != nil && node.Items.Schema != nil {
		dropForeignProse(node.Items.Schema)
	}
}

func dropProse(node *props) {
	node.Description = ""
	eachChild(node, dropProse)
}

const (
	// quantityExponent is the part of the pattern of quantities that matches the exponent; boundedExponent replaces it.
	quantityExponent = `([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+)))`
	boundedExponent  = `([eE](\+|-)?[0-9]{1,3})`
)

// quantityLength is how many characters a quantity may have.
const quantityLength int64 = 256

// boundQuantities limits the exponents of quantities, and their length. The parser expands a number like 1e-2147483648,
// which practically hangs every program that reads the object; to format one of a million zeros takes as long.
func boundQuantities(node *props) {
	if strings.Contains(node.Pattern, quantityExponent) {
		length := quantityLength
		node.MaxLength = &length
	}
	node.Pattern = strings.Replace(node.Pattern, quantityExponent, boundedExponent, 1)
	eachChild(node, boundQuantities)
}

// readable makes the schema refuse numbers that it would accept but that Go types cannot decode: one undecodable object
// makes every list of its kind fail. API servers before Kubernetes 1.36 do not enforce the format of an integer, so an
// int32 has bounds too; an int64 needs none, since they refuse integers beyond it in any case. Durations, which a
// schema accepts as any string, have patterns of their own. A status is exempt, since programs write it.
func readable(node *props) {
	if node.Format == "int32" || node.XIntOrString && !strings.Contains(node.Pattern, boundedExponent) {
		least, most := float64(math.MinInt32), float64(math.MaxInt32)
		if node.Minimum == nil {
			node.Minimum = &least
		}
		if node.Maximum == nil {
			node.Maximum = &most
		}
	}
	eachChild(node, readable)
}

// boundTaint sets the maximum lengths of the key and the value of a taint or a toleration, as those of labels.
func boundTaint(taint *props) {
	for field, length := range map[string]int64{"key": 253 + 1 + 63, "value": 63} {
		edit(taint, func(text *props) { text.MaxLength = &length }, field)
	}
}

// boundResourceNames sets the maximum length of resource names, whose Kubernetes type has none, so that the API server
// can bound the cost of comparing them.
func boundResourceNames(group *props) {
	bound := func(name *props) {
		length := int64(253)
		name.MaxLength = &length
	}
	edit(group, bound, "coveredResources", "*")
	edit(group, bound, "flavors", "*", "resources", "*", "name")
}

// amendTemplate changes the template of a pod, and requires that it has a spec.
func amendTemplate(template *props) {
	requireSpec(template)
	edit(template, amendPodSpec, "spec")
}

func amendPodSpec(podSpec *props) {
	boundContainers(podSpec)
	defaultResources(podSpec)
}

// requireSpec makes the spec of a template required. Kubernetes' Go types make it optional, but a template without one
// is useless.
func requireSpec(template *props) {
	if !slices.Contains(template.Required, "spec") {
		template.Required = append(template.Required, "spec")
	}
}

// maxContainers limits lists of containers, so that the API server can bound the cost of a rule over each of them. No
// real pod has so many containers.
const maxContainers int64 = 1024

func boundContainers(podSpec *props) {
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		edit(podSpec, func(containers *props) {
			bound := maxContainers
			containers.MaxItems = &bound
		}, list)
	}
}

// defaultResources defaults the resources of containers to the empty object that clients with Go types always write, so
// that a template which such a client has read and written back is unchanged.
func defaultResources(podSpec *props) {
	for _, list := range []string{"containers", "initContainers"} {
		edit(podSpec, defaultEmpty, list, "*", "resources")
	}
}

// amendClaim removes the status, which a claim template does not have, and makes empty resources the default.
func amendClaim(claim *props) {
	delete(claim.Properties, "status")
	edit(claim, defaultEmpty, "spec", "resources")
}

func defaultEmpty(object *props) {
	object.Default = &apiextensionsv1.JSON{Raw: []byte("{}")}
}
