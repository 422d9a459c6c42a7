package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageListsAllWriters checks that the table under "Who writes to the API server" has exactly the folders of the
// operator whose code writes with a client.
func TestPageListsAllWriters(t *testing.T) {
	var found []string
	for _, under := range []string{"internal", "cmd/muster-operator"} {
		err := filepath.WalkDir(filepath.Join("../..", under), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder, err := filepath.Rel("../..", filepath.Dir(path))
			if err == nil && !slices.Contains(found, folder) && writes(t, path) {
				found = append(found, folder)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The first two are for tests, and not part of the operator; watching passes events on by methods of these names.
	found = slices.DeleteFunc(found, func(folder string) bool {
		return slices.Contains([]string{
			"internal/testcluster", "internal/admission/admissiontest", "internal/jobs/controller/watching",
		}, folder)
	})
	slices.Sort(found)
	if diff := cmp.Diff(found, listed(t)); diff != "" {
		t.Errorf("docs/develop/architecture.md, under Who writes to the API server (-code +page):\n%s", diff)
	}
}

// writes reports whether the file has a call that looks like a client's: a writing verb with a context as its first
// argument.
func writes(t *testing.T, path string) (does bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		verb, ok := call.Fun.(*ast.SelectorExpr)
		if ok && slices.Contains([]string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf", "DeleteCollection"},
			verb.Sel.Name) && isContext(call.Args[0]) {
			does = true
		}
		return true
	})
	return does
}

// isContext reports whether the argument is a context, judged by its name.
func isContext(argument ast.Expr) bool {
	switch argument := argument.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(argument.Name), "ctx")
	case *ast.CallExpr:
		of, ok := argument.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, _ := of.X.(*ast.Ident)
		return of.Sel.Name == "Context" || from != nil && from.Name == "context"
	}
	return false
}

// listed returns the folders in the page's table.
func listed(t *testing.T) (folders []string) {
	t.Helper()
	for _, row := range rows(t, "architecture.md", "## Who writes to the API server") {
		folders = append(folders, named(row[0])...)
	}
	slices.Sort(folders)
	return folders
}
