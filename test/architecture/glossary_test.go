package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGlossaryOpensTheDocsOfItsTypes checks that each sentence of docs/glossary.md opens the documentation of the type
// that the row names.
func TestGlossaryOpensTheDocsOfItsTypes(t *testing.T) {
	text, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[3], "`") {
			continue
		}
		found++
		path := strings.Trim(cells[3], "`")
		folder, name := filepath.Dir(path), filepath.Base(path)
		room, typeName, _ := strings.Cut(name, ".")
		doc := docOf(t, filepath.Join("../..", folder, room), typeName)
		if want := typeName + " is " + cells[1]; !strings.HasPrefix(doc, want) {
			t.Errorf("%s: the documentation of %s begins %.150q, want %q", cells[0], path, doc, want)
		}
	}
	if found < 25 {
		t.Errorf("found %d words in the glossary, want at least 25", found)
	}
}

// docOf returns the documentation of a type in a folder, in one line; "" if there is none.
func docOf(t *testing.T, folder, name string) (doc string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if g, ok := node.(*ast.GenDecl); ok && g.Tok == token.TYPE && g.Specs[0].(*ast.TypeSpec).Name.Name == name {
				doc = strings.Join(strings.Fields(g.Doc.Text()), " ")
			}
			return doc == ""
		})
	}
	return doc
}
