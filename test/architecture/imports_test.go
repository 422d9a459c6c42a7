// Package architecture keeps the arrows of docs/architecture.md: who may import
// whom among the rooms of the main module.
package architecture

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/musterhq/muster/"

// mayImport lists, for each room, the rooms that it may import beside itself and
// api. A room is a folder with all below it; the longest match counts.
var mayImport = map[string][]string{
	"api":                           {},
	"charts":                        {},
	"examples":                      {},
	"cmd/muster":                    {"examples", "internal/engine", "internal/admission", "internal/workload", "internal/config", "internal/listwatch"},
	"cmd/muster-operator":           {"internal/jobs", "internal/admission", "internal/admission/slim", "internal/admission/keptqueues", "internal/install", "internal/config", "internal/rendezvous", "internal/podspec", "internal/metrics", "internal/tracing", "internal/certificate", "internal/webhook", "internal/listwatch"},
	"cmd/muster-agent":              {"internal/rendezvous/protocol", "python"},
	"python":                        {},
	"internal/rendezvous":           {"internal/rendezvous/protocol", "internal/rendezvous/round", "internal/rendezvous/attempt", "internal/certificate"},
	"internal/rendezvous/protocol":  {},
	"internal/rendezvous/round":     {"internal/rendezvous/protocol"},
	"internal/rendezvous/attempt":   {"internal/rendezvous/protocol"},
	"internal/engine":               {},
	"internal/sim":                  {"internal/engine"},
	"internal/admission":            {"internal/metrics", "internal/engine", "internal/podspec", "internal/workload", "internal/admission/lifecycle", "internal/admission/slim", "internal/admission/keptqueues"},
	"internal/admission/lifecycle":  {"internal/workload"},
	"internal/admission/slim":       {"internal/workload"},
	"internal/admission/keptqueues": {"internal/listwatch", "internal/workload"},
	"internal/jobs":                 {"internal/metrics", "internal/replicas", "internal/podspec", "internal/workload"},
	"internal/replicas":             {"internal/podspec"},
	"internal/podspec":              {},
	"internal/metrics":              {},
	"internal/certificate":          {},
	"internal/listwatch":            {"internal/metrics"},
	"internal/tracing":              {"internal/workload"},
	"internal/webhook":              {"internal/certificate"},
	"internal/workload":             {},
	"internal/config":               {},
	"internal/install":              {"charts"},
	"internal/testcluster":          {"internal/install"},
	"test":                          {"internal/testcluster", "internal/install", "examples"},
	"tools":                         {},
}

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

func TestEveryImportIsAnArrowOfTheArchitecture(t *testing.T) {
	for _, p := range load(t) {
		from := roomOf(p.PkgPath)
		if from == "" {
			t.Errorf("%s is in no room: give it one in docs/architecture.md and here", p.PkgPath)
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(p.Imports)) {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			to := roomOf(imported)
			if to != from && to != "api" && !slices.Contains(mayImport[from], to) {
				t.Errorf("%s imports %s: no arrow leads from %s to %s", p.PkgPath, imported, from, to)
			}
		}
	}
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
		for _, forbidden := range mayNotUse[roomOf(p.PkgPath)] {
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

func roomOf(path string) string {
	path = strings.TrimPrefix(path, module)
	var best string
	for room := range mayImport {
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
