// Package architecture checks the code against pages in docs/develop: packages.md for allowed imports, architecture.md
// for writers to the API server, and dependencies.md for direct dependencies. It also checks how large rooms are, and
// names.
package architecture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
	"k8s.io/apimachinery/pkg/util/sets"
)

const module = "github.com/musterhq/muster/"

// What writes to the API server for the engine, and what counts.
const (
	decisions = module + "internal/admission/decisions"
	report    = module + "internal/admission/report"
	metrics   = module + "internal/metrics"
)

// forbidden holds the packages that a package tree must not import, by the prefix of their path: code that decides has
// no client, no clock of its own and no controller.
var forbidden = map[string][]string{
	"internal/engine": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand",
		"k8s.io/utils/clock"},
	"internal/sim": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http",
		"k8s.io/utils/clock"},
	"internal/podspec": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand"},
	"internal/replicas": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand",
		"k8s.io/utils/clock"},
	"internal/workload": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand",
		"k8s.io/utils/clock"},
	"internal/admission/translate": {"k8s.io/client-go", "net/http", "math/rand", "k8s.io/utils/clock", metrics,
		decisions, report},
	"internal/admission/whatif": {"k8s.io/client-go", "net/http", "math/rand", "k8s.io/utils/clock", metrics,
		decisions, report},
	"internal/admission/lifecycle": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand",
		"k8s.io/utils/clock"},
	"internal/jobs/workloads":      {"net/http", "math/rand", "k8s.io/utils/clock"},
	"internal/rendezvous/protocol": {"k8s.io", "sigs.k8s.io", "net/http"},
	"internal/rendezvous/round":    {"k8s.io", "sigs.k8s.io", "net/http", "math/rand", "sync"},
	"internal/rendezvous/attempt":  {"k8s.io", "sigs.k8s.io", "net/http", "math/rand", "sync"},
	"cmd/muster":                   {decisions, report, module + "internal/admission/audit"},
	"cmd/muster-agent":             {"k8s.io", "sigs.k8s.io", "github.com/spf13"},
	"api":                          {"k8s.io/client-go", "github.com/musterhq/muster/internal"},
}

// TestPageListsAllImports checks that the table under "Allowed imports" has exactly the imports of the code.
func TestPageListsAllImports(t *testing.T) {
	page, code := importsOfThePage(t), map[string]sets.Set[string]{}
	for tree := range page {
		code[tree] = sets.Set[string]{}
	}
	for _, p := range load(t) {
		from := treeOf(page, p.PkgPath)
		if from == "" {
			t.Errorf("%s belongs to no row of the table Allowed imports in docs/develop/packages.md", p.PkgPath)
			continue
		}
		for imported := range p.Imports {
			if to := treeOf(page, imported); strings.HasPrefix(imported, module) && to != from && to != "api" {
				code[from].Insert(to)
			}
		}
	}
	if diff := cmp.Diff(code, page); diff != "" {
		t.Errorf("docs/develop/packages.md, under Allowed imports (-code +page):\n%s", diff)
	}
}

// importsOfThePage returns which other trees each package tree may import, from the page's table.
func importsOfThePage(t *testing.T) map[string]sets.Set[string] {
	t.Helper()
	out := map[string]sets.Set[string]{}
	for _, row := range rows(t, "packages.md", "## Allowed imports") {
		for _, tree := range named(row[0]) {
			out[tree] = sets.New(named(row[1])...)
		}
	}
	return out
}

// jobRooms are the folders under internal/jobs that hold what all job APIs share. The table says what each may import.
var jobRooms = sets.New("write", "workloads", "probe", "controller")

// TestNoJobAPIImportsAnother checks that the packages of job APIs import neither each other nor what runs them, and
// that no package which all of them share imports one: code that two APIs share belongs to package jobs.
func TestNoJobAPIImportsAnother(t *testing.T) {
	const jobs = module + "internal/jobs/"
	for _, p := range load(t) {
		if !strings.HasPrefix(p.PkgPath+"/", jobs) {
			continue
		}
		from := folder(p.PkgPath+"/", jobs)
		for imported := range p.Imports {
			if !strings.HasPrefix(imported, jobs) || folder(imported, jobs) == from {
				continue
			}
			switch to := folder(imported, jobs); {
			case !jobRooms.Has(to):
				t.Errorf("%s imports %s, which is part of a job API", p.PkgPath, imported)
			case to != "write" && !jobRooms.Has(from):
				t.Errorf("%s imports %s: a job API, and package jobs, import only write of the folders beside them", p.PkgPath, imported)
			}
		}
	}
}

// TestCodeThatDecidesUsesNoClient checks the imports of the packages in forbidden.
func TestCodeThatDecidesUsesNoClient(t *testing.T) {
	for _, p := range load(t) {
		for _, library := range forbidden[treeOf(forbidden, p.PkgPath)] {
			for imported := range p.Imports {
				if imported == library || strings.HasPrefix(imported, library+"/") {
					t.Errorf("%s imports %s, which code that decides must not use", p.PkgPath, imported)
				}
			}
		}
	}
}

// load returns the packages of the main module with their imports, without tests.
func load(t *testing.T) []*packages.Package {
	t.Helper()
	list, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports, Dir: "../.."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("found %d packages, want at least 10", len(list))
	}
	return list
}

// treeOf returns the package tree of a package: the longest of the folders that it is in.
func treeOf[V any](trees map[string]V, path string) (best string) {
	path = strings.TrimPrefix(path, module)
	for tree := range trees {
		if (path == tree || strings.HasPrefix(path, tree+"/")) && len(tree) > len(best) {
			best = tree
		}
	}
	return best
}

// folder returns the first part of a path below the given one.
func folder(path, under string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, under), "/")
	return name
}
