package reason

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestEveryCodeIsDocumented: docs/reference/reasons.md describes exactly the codes, which users look up and use in
// alerts.
func TestEveryCodeIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]bool{}
	for _, line := range strings.Split(string(page), "\n") {
		if code, ok := strings.CutPrefix(line, "## "); ok {
			entries[code] = true
		}
	}
	codes := declaredCodes(t)
	for code := range codes {
		if !entries[code] {
			t.Errorf("docs/reference/reasons.md has no entry for %s", code)
		}
	}
	for code := range entries {
		if !codes[code] {
			t.Errorf("docs/reference/reasons.md has an entry for %s, which is not a code", code)
		}
	}
}

// declaredCodes returns the values of all constants of type Code.
func declaredCodes(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			if code != "" {
				codes[code] = true
			}
		}
		return true
	})
	if len(codes) < 9 {
		t.Fatalf("found only the codes %v", codes)
	}
	return codes
}
