package validation

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"
)

//go:generate go test -count=1 -vet=off -run ^TestPageIsCurrent$ . -rewrite

var rewrite = flag.Bool("rewrite", false, "write docs/reference/validation.md from the rules and page.md.tmpl")

const page = "../../docs/reference/validation.md"

// row is a row of the page: one rule for a kind, where it is kept, and the message for who breaks it.
type row struct {
	kind, sentence string
	place          place
	message        string
}

// TestPageIsCurrent checks that docs/reference/validation.md is what the rules and page.md.tmpl make of it.
func TestPageIsCurrent(t *testing.T) {
	want, err := newPage()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/validation.md is not what the rules and page.md.tmpl make of it: run make generate")
	}
}

// newPage returns the page. It fails for a kind that has rules but no section in the template.
func newPage() ([]byte, error) {
	rows, shown := pageRows(), map[string]bool{}
	var page bytes.Buffer
	text, err := template.New("page.md.tmpl").Funcs(template.FuncMap{
		"kinds":  func() string { return kindsOf(rows) },
		"counts": func() string { return countsOf(rows) },
		"rules": func(kind string) string {
			shown[kind] = true
			return tableOf(kind, rows)
		},
	}).ParseFiles("page.md.tmpl")
	if err == nil {
		err = text.Execute(&page, nil)
	}
	for _, row := range rows {
		if err == nil && !shown[row.kind] {
			err = fmt.Errorf("page.md.tmpl has no section for the rules of a %s", row.kind)
		}
	}
	return page.Bytes(), err
}

// pageRows returns the rows of the page: the rules that are tested, those of each kind in the order of their places,
// and then what only a condition can say.
func pageRows() (rows []row) {
	for _, rule := range slices.Concat(allRules(), allWarnings()) {
		rows = append(rows, row{rule.kind, rule.sentence, rule.place, rule.message})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return rank(a) - rank(b) })
	return append(rows, conditions...)
}

// places are where rules are kept, in the order of the page.
var places = []place{inSchema, inCEL, inPolicy, inCondition}

// rank returns the index of a row's place in places.
func rank(r row) int {
	where, _, _ := strings.Cut(string(r.place), " ") // without the name of the policy
	return slices.Index(places, place(where))
}

// tableOf returns the table of the rules of a kind.
func tableOf(kind string, rows []row) string {
	table := "| rule | place | message |\n| --- | --- | --- |"
	for _, row := range rows {
		if row.kind == kind {
			table += fmt.Sprintf("\n| %s | %s | `%s` |", row.sentence, row.place, row.message)
		}
	}
	return table
}

// countsOf returns the table of how many rules are kept in which place.
func countsOf(rows []row) string {
	counts := make([]int, len(places))
	for _, row := range rows {
		counts[rank(row)]++
	}
	table := "| place | rules |\n| --- | --- |"
	for i, where := range places {
		table += fmt.Sprintf("\n| %s | %d |", where, counts[i])
	}
	return table
}

// kindsOf returns links to the sections of the kinds, in the order of their names.
func kindsOf(rows []row) string {
	var links []string
	for _, row := range rows {
		links = append(links, fmt.Sprintf("[%s](#%s)", row.kind, strings.ToLower(row.kind)))
	}
	slices.Sort(links)
	var lines []string
	for chunk := range slices.Chunk(slices.Compact(links), 4) {
		lines = append(lines, strings.Join(chunk, ", "))
	}
	return strings.Join(lines, ",\n")
}

// conditions are the rules that the API server cannot check, because they depend on other objects. What breaks them is
// accepted and waits, and gets the condition or the event of the last column. No test of this package tries them.
var conditions = []row{
	{"JobSet", "a template makes a valid Job", inCondition, "event JobCreationFailed with the refusal of the Job"},
	{"JobSet", "an existing volume claim matches the JobSet's request and has no other owner", inCondition,
		"event PVCCreationFailed"},
	{"JobSet", "an existing Service of the subdomain is headless and selects the pods", inCondition,
		"event HeadlessServiceCreationFailed"},
	{"JobSet", "a requested agent can be added", inCondition, "condition muster.dev/CannotStart"},
	{"JobSet", "Jobs in a queue grow within their quota", inCondition, "event ResizeWaitsForQuota"},
	{"JobSet", "the annotation speed-exponent of an elastic template, also of the kinds below, is a number above 0, and 2 at most",
		inCondition, "event InvalidJob"},
	{"JobSet", "a JobSet that a LocalQueue called default takes has at most 64 replicated jobs", inCondition,
		"event WorkloadCreationFailed with the refusal of the Workload"},
	{"Workload", "its queue exists and admits its namespace", inCondition,
		"QuotaReserved False, Inadmissible: LocalQueue X doesn't exist"},
	{"Job", "the annotation job-min-parallelism is a number of its pods", inCondition, "event InvalidJob"},
	{"Job", "completions that follow parallelism equal it, in an Indexed Job", inCondition, "event InvalidJob"},
	{"VCJob", "dependencies of tasks form no cycle", inCondition, "event InvalidJob"},
	{"TrainingJob", "sizes are at least 1, and minSize at most maxSize", inCondition, "stage WrongConfiguration"},
	{"LatticeJob", "its parts fit together", inCondition, "Failed: Failed to compile job"},
	{"LatticeJob", "the kinds that it needs are served", inCondition, "Pending: The cluster does not serve"},
	{"ClusterQueue", "its flavors exist, and their Topologies", inCondition,
		"Active: FlavorNotFound or TopologyNotFound; True while it admits through others"},
	{"ClusterQueue", "its cohort is not in a cycle", inCondition, "Active False"},
	{"Cohort", "it is not its own ancestor", inCondition, "Active False on every ClusterQueue below"},
	{"LocalQueue", "its ClusterQueue exists and admits", inCondition,
		"Active False: ClusterQueueDoesNotExist, ClusterQueueIsInactive"},
}
