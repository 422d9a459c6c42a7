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
)

// terminalFiles are the files of the command line that may name the standard output or the error output, or take the
// writer for programs. All others print through the show.Output that the command line gives them, which escapes control
// characters.
var terminalFiles = map[string][]string{
	"command/main.go":    {"os.Stdout", "os.Stderr"}, // wraps both
	"command/kubectl.go": {"os.Stderr"},              // what kubectl itself prints is kubectl's
	"command/output.go":  {"show.Programs"},          // JSON and YAML
	"command/version.go": {"show.Programs"},          // JSON and YAML
}

// TestNothingPrintsPastTheOutput checks that no code of the command line prints to the terminal in another way than
// through show.Output.
func TestNothingPrintsPastTheOutput(t *testing.T) {
	root, seen := "../../cmd/muster", map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, use := range waysToPrint(t, path) {
			if !slices.Contains(terminalFiles[file], use) {
				t.Errorf("%s uses %s: print to the writer of the command, a show.Output", file, use)
			}
			seen[file+" "+use] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, uses := range terminalFiles {
		for _, use := range uses {
			if !seen[file+" "+use] {
				t.Errorf("%s does not use %s any more: remove it from terminalFiles", file, use)
			}
		}
	}
}

// waysToPrint returns what the file uses that reaches the terminal past a show.Output.
func waysToPrint(t *testing.T, path string) (uses []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, imported := range file.Imports {
		if slices.Contains([]string{`"log"`, `"log/slog"`}, imported.Path.Value) {
			uses = append(uses, imported.Path.Value)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			from, _ := node.X.(*ast.Ident)
			if from == nil || from.Obj != nil {
				return true
			}
			if use := from.Name + "." + node.Sel.Name; slices.Contains(pastOutput, use) {
				uses = append(uses, use)
			}
		case *ast.CallExpr:
			if f, ok := node.Fun.(*ast.Ident); ok && f.Obj == nil && (f.Name == "print" || f.Name == "println") {
				uses = append(uses, f.Name)
			}
		}
		return true
	})
	return uses
}

// pastOutput are the names by which code could reach the terminal, or get the bare writer of an Output.
var pastOutput = []string{
	"os.Stdout", "os.Stderr", "os.NewFile", "os.OpenFile", "syscall.Write", "syscall.Stdout", "syscall.Stderr",
	"fmt.Print", "fmt.Printf", "fmt.Println", "show.Programs",
}
