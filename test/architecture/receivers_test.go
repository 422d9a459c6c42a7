package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestReceiversBeginLikeTheirTypes checks that the receiver of each method begins with the first letter of its type,
// and that all methods of a type call it the same: who reads p.place in a method then knows whose method that is.
func TestReceiversBeginLikeTheirTypes(t *testing.T) {
	receivers := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(entry.Name(), "zz_generated") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declared := range file.Decls {
			name, of := receiver(declared)
			if name == "" || name == "_" {
				continue
			}
			key := filepath.Dir(path) + " " + file.Name.Name + "." + of
			if !strings.EqualFold(name[:1], of[:1]) {
				t.Errorf("%s: the receiver of a method of %s is %s, want a name that begins like the type", path, of, name)
			}
			if other := receivers[key]; other != "" && other != name {
				t.Errorf("%s: the receiver of a method of %s is %s, and elsewhere %s", path, of, name, other)
			}
			receivers[key] = name
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(receivers) < 300 {
		t.Errorf("found methods of %d types, want at least 300", len(receivers))
	}
}

// receiver returns the name and the type of the receiver of a method, "" for what is no method.
func receiver(declared ast.Decl) (name, of string) {
	method, ok := declared.(*ast.FuncDecl)
	if !ok || method.Recv == nil || len(method.Recv.List[0].Names) == 0 {
		return "", ""
	}
	ast.Inspect(method.Recv.List[0].Type, func(node ast.Node) bool {
		if id, ok := node.(*ast.Ident); ok && of == "" {
			of = id.Name
		}
		return of == ""
	})
	return method.Recv.List[0].Names[0].Name, of
}
