package validation

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/charts"
)

// Each rule of a definition has a row whose message it can give, and the other way round, so that no rule is added or
// taken away without its row and its test.
func TestTableListsEveryRuleOfTheDefinitions(t *testing.T) {
	rows := pageRows()
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/*.yaml") {
		kind := definition.Spec.Names.Kind
		if definition.Spec.Group == volcano.GroupVersion.Group {
			kind = "VCJob" // as people call it, for Kubernetes has a Job too
		}
		given := sets.New[string]()
		collectMessages(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, given)
		listed := sets.New[string]()
		for _, row := range rows {
			if row.kind == kind && row.place == inCEL {
				listed.Insert(row.message)
			}
		}
		for message := range given {
			if !slices.ContainsFunc(listed.UnsortedList(), func(row string) bool { return alike(message, row) }) {
				t.Errorf("%s: a rule of the definition has no row: %q", kind, message)
			}
		}
		for row := range listed {
			if !slices.ContainsFunc(given.UnsortedList(), func(message string) bool { return alike(message, row) }) {
				t.Errorf("%s: the definition has no rule for the row %q", kind, row)
			}
		}
	}
}

func TestTableListsEveryRuleOfThePolicies(t *testing.T) {
	rows := pageRows()
	listed, seen := map[string]int{}, sets.New[string]()
	for _, row := range rows {
		// A rule for several kinds has a row for each, whose message may name a field of that kind.
		if name, ok := strings.CutPrefix(string(row.place), policy); ok && !seen.Has(string(row.place)+row.sentence) {
			seen.Insert(string(row.place) + row.sentence)
			listed[name]++
		}
	}
	kept := map[string]int{}
	for _, object := range readAll[admissionv1.ValidatingAdmissionPolicy](t, "muster/policies/*.yaml") {
		if object.Kind == "ValidatingAdmissionPolicy" {
			kept[object.Name] = len(object.Spec.Validations)
		}
	}
	if diff := cmp.Diff(kept, listed); diff != "" {
		t.Errorf("rules a policy (-policies +rows):\n%s", diff)
	}
}

func TestEveryPolicyIsInForce(t *testing.T) {
	policies := sets.New[string]()
	for _, object := range readAll[admissionv1.ValidatingAdmissionPolicy](t, "muster/policies/*.yaml") {
		if object.Kind == "ValidatingAdmissionPolicy" {
			policies.Insert(object.Name)
			if object.Spec.FailurePolicy == nil || *object.Spec.FailurePolicy != admissionv1.Fail {
				t.Errorf("%s lets through what it cannot evaluate", object.Name)
			}
		}
	}
	bound := sets.New[string]()
	for _, object := range readAll[admissionv1.ValidatingAdmissionPolicyBinding](t, "muster/policies/*.yaml") {
		action := admissionv1.Deny
		if slices.ContainsFunc(allWarnings(), func(r rule) bool { return r.policyName() == object.Name }) {
			action = admissionv1.Warn
		}
		if object.Kind == "ValidatingAdmissionPolicyBinding" &&
			slices.Equal(object.Spec.ValidationActions, []admissionv1.ValidationAction{action}) {
			bound.Insert(object.Spec.PolicyName)
		}
	}
	if !policies.Equal(bound) {
		t.Errorf("policies %v, but bound to deny are %v", sets.List(policies), sets.List(bound))
	}
}

// The API server looks at every rule of a definition with every write of the status, and a Workload's status is what is
// written most: what all Workloads have is judged by policies, which are asked only when it changes.
func TestWorkloadStatusWritesEvaluateNoRulesOfTheDefinition(t *testing.T) {
	rare := []string{".status.admissionChecks", ".spec.podSets[].topologyRequest"}
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t,
		"muster/apis/kueue.x-k8s.io_workloads.yaml") {
		paths := sets.New[string]()
		collectRuled(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, "", paths)
		for path := range paths {
			if !slices.ContainsFunc(rare, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
				t.Errorf("the definition has a rule at %q", path)
			}
		}
	}
}

// collectRuled gathers where the rules are.
func collectRuled(node *apiextensionsv1.JSONSchemaProps, path string, into sets.Set[string]) {
	if len(node.XValidations) > 0 {
		into.Insert(path)
	}
	for name, child := range node.Properties {
		collectRuled(&child, path+"."+name, into)
	}
	if node.Items != nil && node.Items.Schema != nil {
		collectRuled(node.Items.Schema, path+"[]", into)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		collectRuled(node.AdditionalProperties.Schema, path+"{}", into)
	}
}

// alike says whether a row's message is one that a rule's message stands for: the same words but for names and numbers.
func alike(message, row string) bool {
	const enough = 20
	common := 0
	for common < min(len(message), len(row)) && message[common] == row[common] {
		common++
	}
	return strings.Contains(message, row) || common >= enough
}

func collectMessages(node *apiextensionsv1.JSONSchemaProps, into sets.Set[string]) {
	for _, rule := range node.XValidations {
		into.Insert(rule.Message)
	}
	for _, child := range node.Properties {
		collectMessages(&child, into)
	}
	if node.Items != nil && node.Items.Schema != nil {
		collectMessages(node.Items.Schema, into)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		collectMessages(node.AdditionalProperties.Schema, into)
	}
}

// readAll decodes every document of the embedded files.
func readAll[T any](t *testing.T, pattern string) []T {
	t.Helper()
	files, err := fs.Glob(charts.Files, pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var objects []T
	for _, file := range files {
		text, err := fs.ReadFile(charts.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object T
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", file, err))
			}
			objects = append(objects, object)
		}
	}
	return objects
}
