package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/internal/metrics"
)

const (
	metricsPage = "../../docs/operate/metrics.md"
	dashboard   = "../../charts/muster/dashboards/muster.json"
	alerts      = "../../charts/muster/alerts/muster.yaml"
)

// row returns the row of a metric in the table of the docs.
func row(m metrics.Metric) string {
	labels := "-"
	if len(m.Labels) > 0 {
		labels = "`" + strings.Join(m.Labels, "`, `") + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |", m.Name, m.Kind, labels, m.Help)
}

// TestDocsHaveEveryMetric: the docs have every metric with its type, labels and meaning, and no metric that does not
// exist.
func TestDocsHaveEveryMetric(t *testing.T) {
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); regexp.MustCompile("^\\| `(kueue|jobset|training_operator|muster)_").
			MatchString(line) {
			said[line] = true
		}
	}
	declared := metrics.Declared()
	if len(declared) < 50 {
		t.Fatalf("only %d metrics are declared, want at least 50", len(declared))
	}
	for _, m := range declared {
		if !said[row(m)] {
			t.Errorf("%s does not have the line\n%s", metricsPage, row(m))
		}
		delete(said, row(m))
	}
	for line := range said {
		t.Errorf("%s has a line without a metric:\n%s", metricsPage, line)
	}
}

// TestNoMetricHasAJobLabel: no label may have a value for each job, since the number of jobs is unbounded.
func TestNoMetricHasAJobLabel(t *testing.T) {
	bounded := []string{"cluster_queue", "preempting_cluster_queue", "cohort", "flavor", "resource", "name", "namespace",
		"job_namespace", "framework", "kind", "status", "active", "reason", "detailed_reason", "result",
		"outcome", "decision", "cause"}
	for _, m := range metrics.Declared() {
		for _, label := range m.Labels {
			if !slices.Contains(bounded, label) {
				t.Errorf("%s has the label %s, which is not among the bounded labels", m.Name, label)
			}
			if label == "name" && !strings.HasPrefix(m.Name, "kueue_local_queue_") {
				t.Errorf("%s has the label name, which only metrics of LocalQueues may have", m.Name)
			}
		}
	}
}

// TestDashboardQueriesUseDeclaredMetrics: each query uses declared metrics, and labels that they have.
func TestDashboardQueriesUseDeclaredMetrics(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries++
			if faults := faultsOf(target.Expr); len(faults) > 0 {
				t.Errorf("panel %s: query %q has errors %q", panel.Title, target.Expr, faults)
			}
		}
	}
	for _, variable := range board.Templating.List {
		if variable.Definition != "" {
			queries++
			if faults := faultsOf(variable.Definition); len(faults) > 0 {
				t.Errorf("variable %s: query %q has errors %q", variable.Name, variable.Definition, faults)
			}
		}
	}
	if queries < 15 {
		t.Errorf("found only %d queries, want at least 15", queries)
	}
}

// TestAlertsUseDeclaredMetrics: each expression uses declared metrics, and labels that they have. The page has a row
// for each alert. test/chart evaluates the expressions.
func TestAlertsUseDeclaredMetrics(t *testing.T) {
	text, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			found++
			if faults := faultsOf(rule.Expr); len(faults) > 0 {
				t.Errorf("alert %s: expression %q has errors %q", rule.Alert, rule.Expr, faults)
			}
			if row := fmt.Sprintf("\n| `%s` | %s | ", rule.Alert,
				rule.Labels["severity"]); !strings.Contains(string(page), row) {
				t.Errorf("%s has no row %q", metricsPage, row)
			}
		}
	}
	if rows := strings.Count(string(page), "\n| `Muster"); found != rows || found == 0 {
		t.Errorf("%s has %d alerts, %s describes %d", alerts, found, metricsPage, rows)
	}
}

func TestInvalidQueriesAreFound(t *testing.T) {
	for query, right := range map[string]bool{
		`sum by (cluster_queue) (kueue_pending_workloads{status="active"})`: true,

		`histogram_quantile(0.95, sum by (le) (rate(kueue_admission_wait_time_seconds_bucket{cluster_queue=~"$q"}[5m])))`: true,

		`label_values(kueue_pending_workloads, cluster_queue)`: true,
		`kueue_pending_workload`:                               false,
		`kueue_pending_workloads{queue="a"}`:                   false,
		`sum by (queue) (kueue_pending_workloads)`:             false,
		`rate(kueue_pending_workloads_bucket[5m])`:             false,
		`rate(kueue_admission_wait_time_seconds[5m])`:          false,
		`label_values(kueue_pending_workloads, queue)`:         false,
		`sum(up)`: false,
		`sum by (cluster_queue) (kueue_pending_workloads)) / 2`: false,
	} {
		if faults := faultsOf(query); (len(faults) == 0) != right {
			t.Errorf("query %q: errors = %q", query, faults)
		}
	}
}

var (
	metricName = regexp.MustCompile(`\b(?:kueue|jobset|training_operator|muster)_\w+`)
	matchers   = regexp.MustCompile(`\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	valuesOf   = regexp.MustCompile(`^label_values\([^,]+,\s*(\w+)\)$`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
)

// faultsOf returns the errors in a query of Muster's metrics.
func faultsOf(query string) (faults []string) {
	names := metricName.FindAllString(quoted.ReplaceAllString(query, `""`), -1)
	if len(names) == 0 {
		return []string{"it asks for nothing of ours"}
	}
	if strings.Count(query, "(") != strings.Count(query, ")") || strings.Count(query, "{") != strings.Count(query, "}") {
		faults = append(faults, "brackets are left open")
	}
	labels := map[string]bool{"le": true, "pod": true}
	for _, name := range names {
		m, ok := find(name)
		if !ok {
			faults = append(faults, "there is no "+name)
		}
		for _, label := range m.Labels {
			labels[label] = true
		}
	}
	var asked []string
	for _, list := range matchers.FindAllStringSubmatch(query, -1) {
		for _, m := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(list[1], `""`), -1) {
			asked = append(asked, m[1])
		}
	}
	for _, list := range grouping.FindAllStringSubmatch(query, -1) {
		asked = append(asked, strings.FieldsFunc(list[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if m := valuesOf.FindStringSubmatch(query); m != nil {
		asked = append(asked, m[1])
	}
	for _, label := range asked {
		if !labels[label] {
			faults = append(faults, "none of them has the label "+label)
		}
	}
	return faults
}

// find returns the metric that a name in a query refers to; names of a histogram have a suffix.
func find(name string) (metrics.Metric, bool) {
	for _, m := range metrics.Declared() {
		switch {
		case m.Kind != metrics.Histogram && m.Name == name,
			m.Kind == metrics.Histogram &&
				slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name):
			return m, true
		}
	}
	return metrics.Metric{}, false
}
