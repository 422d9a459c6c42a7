package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReasonsOfTroubleshootingExist checks that docs/use/troubleshooting.md has a row only for reasons that the code
// uses, and one for each code in docs/reference/reasons.md.
func TestReasonsOfTroubleshootingExist(t *testing.T) {
	used := literals(t, "internal", "api", "cmd/muster/view")
	listed := map[string]bool{}
	for row := range strings.Lines(read(t, "docs/use/troubleshooting.md")) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range regexp.MustCompile("`([A-Z][A-Za-z]+)(…?)`").FindAllStringSubmatch(cells[1], -1) {
			listed[match[1]] = true
			if !used[match[1]] {
				t.Errorf("docs/use/troubleshooting.md has a row for %s, which the code does not use", match[1])
			}
		}
	}
	codes, _, _ := strings.Cut(read(t, "docs/reference/reasons.md"), "\n# ")
	for line := range strings.Lines(codes) {
		if code, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok && !listed[code] {
			t.Errorf("docs/use/troubleshooting.md has no row for %s", code)
		}
	}
	if len(listed) < 20 {
		t.Fatalf("found %d reasons in docs/use/troubleshooting.md, want at least 20: %v", len(listed), listed)
	}
}

// TestMessagesOfInstallPageExist checks that the operator and the chart print what docs/operate/install.md quotes of
// them in its table of what keeps an installation from starting. A … stands for what differs.
func TestMessagesOfInstallPageExist(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/operate/install.md"), "\n## If it does not start\n")
	printed := slices.Sorted(maps.Keys(literals(t, "internal", "cmd/muster-operator")))
	printed = append(printed, read(t, "charts/muster/templates/apis.yaml"))
	others := map[string]bool{"chart requires kubeVersion": true, "cannot be imported into the current release": true,
		"ImagePullBackOff": true}
	found := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			if others[quoted[1]] {
				continue
			}
			found++
			parts := strings.Split(regexp.QuoteMeta(quoted[1]), "…")
			if message := regexp.MustCompile(strings.Join(parts, ".+")); !slices.ContainsFunc(printed, message.MatchString) {
				t.Errorf("docs/operate/install.md quotes %q, which neither the operator nor the chart prints", quoted[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d messages in the table of docs/operate/install.md, want at least 5", found)
	}
}

// TestLinksOfPagesResolve checks links to files and to headings, and that the README or the index of the documentation
// links to every page.
func TestLinksOfPagesResolve(t *testing.T) {
	linked := map[string]bool{}
	for _, page := range pages(t) {
		for _, match := range regexp.MustCompile(`\]\(([a-zA-Z./-]*\.md|)(#[^)]*)?\)`).
			FindAllStringSubmatch(read(t, page), -1) {
			to := filepath.Join(filepath.Dir(page), match[1])
			if match[1] == "" {
				to = page
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, to)
				continue
			}
			if anchor := strings.TrimPrefix(match[2], "#"); anchor != "" && !anchors(read(t, to))[anchor] {
				t.Errorf("%s links to #%s of %s, which has no such heading", page, anchor, to)
			}
			linked[to] = linked[to] || page == "README.md" || page == index
		}
	}
	for _, page := range pages(t) {
		if page != "README.md" && !linked[page] {
			t.Errorf("neither the README nor %s links to %s", index, page)
		}
	}
}

// anchors returns the anchors of a page's headings: lower case, with a dash for each space, without punctuation.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, "")
		found[strings.ReplaceAll(title, " ", "-")] = true
	}
	return found
}

// literals returns the string literals in the code of some folders, without tests.
func literals(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					found[text] = err == nil
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
