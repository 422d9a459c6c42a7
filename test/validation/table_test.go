package validation

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
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

const page = "../../docs/reference/validation.md"

// row is a row of the page's tables.
type row struct{ kind, sentence, place, message string }

// inCondition is the place of rules that the API server cannot check: what breaks them gets a condition.
const inCondition = "condition"

func TestPageListsTheRulesThatAreTested(t *testing.T) {
	rows, _ := readPage(t)
	listed, tested := sets.New[row](), sets.New[row]()
	for _, row := range rows {
		if row.place != inCondition {
			listed.Insert(row)
		}
	}
	for _, rule := range slices.Concat(allRules(), allWarnings()) {
		tested.Insert(row{rule.kind, rule.sentence, string(rule.place), rule.message})
	}
	for row := range tested.Difference(listed) {
		t.Errorf("tested, but not on the page: %+v", row)
	}
	for row := range listed.Difference(tested) {
		t.Errorf("on the page, but not tested: %+v", row)
	}
}

func TestPageCountsTheRulesByPlace(t *testing.T) {
	rows, counts := readPage(t)
	want := map[string]int{}
	for _, row := range rows {
		place, _, _ := strings.Cut(row.place, " ")
		want[place]++
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("the page's counts differ from its rows (-rows +counts):\n%s", diff)
	}
}

// Each rule of a definition has a row whose message it can give, and the other way round, so that no rule is added or
// taken away without its row and its test.
func TestPageListsEveryRuleOfTheDefinitions(t *testing.T) {
	rows, _ := readPage(t)
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/*.yaml") {
		kind := definition.Spec.Names.Kind
		if definition.Spec.Group == volcano.GroupVersion.Group {
			kind = "VCJob" // as people call it, for Kubernetes has a Job too
		}
		given := sets.New[string]()
		collectMessages(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, given)
		listed := sets.New[string]()
		for _, row := range rows {
			if row.kind == kind && row.place == string(inCEL) {
				listed.Insert(row.message)
			}
		}
		for message := range given {
			if !slices.ContainsFunc(listed.UnsortedList(), func(row string) bool { return alike(message, row) }) {
				t.Errorf("%s: a rule of the definition is not on the page: %q", kind, message)
			}
		}
		for row := range listed {
			if !slices.ContainsFunc(given.UnsortedList(), func(message string) bool { return alike(message, row) }) {
				t.Errorf("%s: the definition has no rule for the page's %q", kind, row)
			}
		}
	}
}

func TestPageListsEveryRuleOfThePolicies(t *testing.T) {
	rows, _ := readPage(t)
	listed, seen := map[string]int{}, sets.New[string]()
	for _, row := range rows {
		// A rule for several kinds has a row for each, whose message may name a field of that kind.
		if name, ok := strings.CutPrefix(row.place, policy); ok && !seen.Has(row.place+row.sentence) {
			seen.Insert(row.place + row.sentence)
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
		t.Errorf("rules a policy (-policies +page):\n%s", diff)
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
		if object.Kind == "ValidatingAdmissionPolicyBinding" && slices.Equal(object.Spec.ValidationActions, []admissionv1.ValidationAction{action}) {
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
	for _, definition := range readAll[apiextensionsv1.CustomResourceDefinition](t, "muster/apis/kueue.x-k8s.io_workloads.yaml") {
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

// readPage gives the rows of the page's tables of rules, by the kind in the heading above, and its table of counts.
func readPage(t *testing.T) ([]row, map[string]int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	counts := map[string]int{}
	kind := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			kind = heading
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(cells[0], "---") || cells[0] == "rule" || cells[0] == "place" {
			continue
		}
		switch len(cells) {
		case 2:
			count, err := strconv.Atoi(cells[1])
			if err != nil {
				t.Fatalf("%s: no count in %q", page, line)
			}
			counts[cells[0]] = count
		case 3:
			rows = append(rows, row{kind, cells[0], cells[1], cells[2]})
		default:
			t.Fatalf("%s: a row of %d cells: %q", page, len(cells), line)
		}
	}
	return rows, counts
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
