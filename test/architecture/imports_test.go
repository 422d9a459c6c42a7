// Package architecture holds docs/architecture.md against the code: which room imports which, and who writes to the API server; and
// docs/dependencies.md against what the modules require.
package architecture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
	"k8s.io/apimachinery/pkg/util/sets"
)

const module = "github.com/musterhq/muster/"

// mayNotUse lists libraries that a room must not need, by the beginning of their
// path: what decides has no client, no clock of its own and no controller.
var mayNotUse = map[string][]string{
	"internal/engine":              {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand", "k8s.io/utils/clock"},
	"internal/sim":                 {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "k8s.io/utils/clock"},
	"internal/podspec":             {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand"},
	"internal/replicas":            {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand", "k8s.io/utils/clock"},
	"internal/workload":            {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand", "k8s.io/utils/clock"},
	"internal/admission/lifecycle": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "math/rand", "k8s.io/utils/clock"},
	"internal/rendezvous/protocol": {"k8s.io", "sigs.k8s.io", "net/http"},
	"internal/rendezvous/round":    {"k8s.io", "sigs.k8s.io", "net/http", "math/rand", "sync"},
	"internal/rendezvous/attempt":  {"k8s.io", "sigs.k8s.io", "net/http", "math/rand", "sync"},
	"cmd/muster-agent":             {"k8s.io", "sigs.k8s.io", "github.com/spf13"},
	"api":                          {"k8s.io/client-go", "github.com/musterhq/muster/internal"},
}

// TestRoomsImportWhatThePageSays: no more, and no less.
func TestRoomsImportWhatThePageSays(t *testing.T) {
	page, code := importsOfThePage(t), map[string]sets.Set[string]{}
	for room := range page {
		code[room] = sets.Set[string]{}
	}
	for _, p := range load(t) {
		from := roomOf(page, p.PkgPath)
		if from == "" {
			t.Errorf("%s belongs to no row of the table Allowed imports in docs/architecture.md", p.PkgPath)
			continue
		}
		for imported := range p.Imports {
			if to := roomOf(page, imported); strings.HasPrefix(imported, module) && to != from && to != "api" {
				code[from].Insert(to)
			}
		}
	}
	if diff := cmp.Diff(code, page); diff != "" {
		t.Errorf("docs/architecture.md, under Allowed imports (-code +page):\n%s", diff)
	}
}

// importsOfThePage are what each room may import, as the page's table has it.
func importsOfThePage(t *testing.T) map[string]sets.Set[string] {
	t.Helper()
	out := map[string]sets.Set[string]{}
	for _, row := range rows(t, "### Allowed imports") {
		for _, room := range named(row[0]) {
			out[room] = sets.New(named(row[1])...)
		}
	}
	return out
}

// TestNoJobAPIKnowsAnother: what two of them share belongs to package jobs.
func TestNoJobAPIKnowsAnother(t *testing.T) {
	const jobs = module + "internal/jobs/"
	for _, p := range load(t) {
		for imported := range p.Imports {
			if strings.HasPrefix(imported, jobs) && strings.HasPrefix(p.PkgPath, jobs) && folder(imported, jobs) != folder(p.PkgPath, jobs) {
				t.Errorf("%s imports %s: an API folder under internal/jobs imports another's", p.PkgPath, imported)
			}
			if strings.HasPrefix(imported, jobs) && p.PkgPath+"/" == jobs {
				t.Errorf("the shared reconciler imports the API %s", imported)
			}
		}
	}
}

func TestWhatDecidesUsesNoClient(t *testing.T) {
	for _, p := range load(t) {
		for _, forbidden := range mayNotUse[roomOf(mayNotUse, p.PkgPath)] {
			for imported := range p.Imports {
				if imported == forbidden || strings.HasPrefix(imported, forbidden+"/") {
					t.Errorf("%s imports %s", p.PkgPath, imported)
				}
			}
		}
	}
}

// load lists the packages of the main module with what their own files import,
// tests left out.
func load(t *testing.T) []*packages.Package {
	t.Helper()
	list, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports, Dir: "../.."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("only %d packages were found", len(list))
	}
	return list
}

// roomOf is the room of a package: the longest of the folders that it is in.
func roomOf[V any](rooms map[string]V, path string) (best string) {
	path = strings.TrimPrefix(path, module)
	for room := range rooms {
		if (path == room || strings.HasPrefix(path, room+"/")) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

func folder(path, under string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, under), "/")
	return name
}
