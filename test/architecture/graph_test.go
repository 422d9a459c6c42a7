package architecture

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// graph is what the caps of size_test.go are about: how large the folders, types and functions of the main module are,
// and which files of a package use each other. Tests and generated files do not count. All paths are relative to the
// root of the repository.
type graph struct {
	files     map[string]int      // the number of Go files, by folder
	methods   map[string]int      // the number of methods, by folder and type
	cycles    map[string][]string // the files of the largest cycle of mutual use, by folder
	functions map[string]int      // the number of lines, by file and function
}

// theGraph loads the graph once for all tests.
var theGraph = sync.OnceValues(func() (*graph, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo
	list, err := packages.Load(&packages.Config{Mode: mode, Dir: "../.."}, "./...")
	if err != nil {
		return nil, err
	}
	g := &graph{files: map[string]int{}, methods: map[string]int{}, cycles: map[string][]string{},
		functions: map[string]int{}}
	for _, p := range list {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		g.add(p)
	}
	return g, nil
})

// loadGraph returns the graph of the main module.
func loadGraph(t *testing.T) *graph {
	t.Helper()
	g, err := theGraph()
	if err != nil {
		t.Fatal(err)
	}
	if len(g.files) < 50 || len(g.functions) < 3000 {
		t.Fatalf("found %d folders and %d functions, want at least 50 and 3,000", len(g.files), len(g.functions))
	}
	return g
}

// add counts the files, methods and functions of a package.
func (g *graph) add(p *packages.Package) {
	folder := strings.TrimPrefix(p.PkgPath, module)
	uses := map[string][]string{}
	for _, file := range p.Syntax {
		if ast.IsGenerated(file) {
			continue
		}
		name := filepath.Base(p.Fset.Position(file.Package).Filename)
		uses[name] = usedFiles(p, file)
		g.files[folder]++
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				g.addFunction(p, folder, name, f)
			}
		}
	}
	g.cycles[folder] = largestCycle(uses)
}

// addFunction counts a function, and as a method of its type if it is one.
func (g *graph) addFunction(p *packages.Package, folder, file string, f *ast.FuncDecl) {
	name := f.Name.Name
	if f.Recv != nil {
		of := typeOf(f.Recv.List[0].Type)
		g.methods[folder+"."+of]++
		name = of + "." + name
	}
	lines := p.Fset.Position(f.End()).Line - p.Fset.Position(f.Pos()).Line + 1
	g.functions[folder+"/"+file+" "+name] = lines
}

// typeOf returns the name of the type of a receiver.
func typeOf(receiver ast.Expr) (name string) {
	ast.Inspect(receiver, func(node ast.Node) bool {
		if id, ok := node.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// usedFiles returns the other files of the package that declare what a file uses: names of the package, and methods of
// its types. Fields do not count: they belong to the declaration of their type, which the file uses by the type's name
// or by a method.
func usedFiles(p *packages.Package, file *ast.File) (files []string) {
	own := p.Fset.Position(file.Package).Filename
	ast.Inspect(file, func(node ast.Node) bool {
		id, ok := node.(*ast.Ident)
		if !ok {
			return true
		}
		used := p.TypesInfo.Uses[id]
		if f, ok := used.(*types.Func); ok {
			used = f.Origin()
		}
		if used == nil || used.Pkg() != p.Types || used.Parent() != p.Types.Scope() && !isMethod(used) {
			return true
		}
		if other := p.Fset.Position(used.Pos()).Filename; other != own {
			files = append(files, filepath.Base(other))
		}
		return true
	})
	slices.Sort(files)
	return slices.Compact(files)
}

// isMethod reports whether the object is a method of a type or of an interface.
func isMethod(object types.Object) bool {
	f, ok := object.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// largestCycle returns the most files of which each one uses each other one, directly or by way of others of them; nil
// where no two files use each other. uses has the files that each file uses.
func largestCycle(uses map[string][]string) (largest []string) {
	reached := map[string]map[string]bool{}
	for file := range uses {
		reached[file] = map[string]bool{}
		reach(uses, file, reached[file])
	}
	for _, file := range sortedKeys(uses) {
		var cycle []string
		for _, other := range sortedKeys(uses) {
			if reached[file][other] && reached[other][file] {
				cycle = append(cycle, other)
			}
		}
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	return largest
}

// reach adds the files that a file uses, directly or by way of others.
func reach(uses map[string][]string, file string, reached map[string]bool) {
	for _, used := range uses[file] {
		if !reached[used] {
			reached[used] = true
			reach(uses, used, reached)
		}
	}
}

// TestLargestCycle checks the search for cycles on a small package.
func TestLargestCycle(t *testing.T) {
	uses := map[string][]string{
		"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, // a, b and c use each other
		"d": {"e"}, "e": {"d"}, // d and e use each other
		"f": {"a"}, // f is used by nobody
	}
	if got := largestCycle(uses); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the largest cycle is %v, want a, b and c", got)
	}
	if got := largestCycle(map[string][]string{"a": {"b"}}); got != nil {
		t.Errorf("the largest cycle of files without one is %v", got)
	}
}
