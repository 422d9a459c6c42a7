package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere holds the commands of blocks that are not run here, with the reason. Their names are checked like those of
// inline commands.
var elsewhere = map[string]string{
	"make demo":      "the gate (.ci/run) runs it",
	"make test":      "it runs these tests",
	"make test-node": "the gate (.ci/run) runs it",
	"make image":     "the gate (.ci/run) runs it",
	"kubectl apply --server-side -f bin/muster.yaml": "make test-node installs Muster with it",
	// An API server never completes the deletion of a definition whose storage is still being set up.
	"kubectl delete crd -l muster.dev/served=true": "test/chart deletes the definitions after each test",
	"bin/muster down":             "the tests of local/cmd/muster-local stop clusters with it",
	"muster replay decisions.log": "test/scenario replays the decision log of an operator; the operator of these tests writes none",
}

// programs are the first words of the inline commands that are checked.
var programs = []string{"muster", "muster-operator", "muster-agent", "kubectl", "helm", "make", "go"}

// TestCommandsThatAreNotRunExist checks the names in inline commands, and in those in elsewhere.
func TestCommandsThatAreNotRunExist(t *testing.T) {
	path := programsOfPages(t)
	checked := map[string]bool{}
	check := func(t *testing.T, words []string) {
		command := strings.Join(words, " ")
		if checked[command] || len(words) == 1 {
			return
		}
		checked[command] = true
		switch words[0] {
		case "make":
			if !regexp.MustCompile(`(?m)^` + words[1] + `:.* ## `).MatchString(read(t, "Makefile")) {
				t.Errorf("%s: the Makefile has no such target", command)
			}
		case "go":
			checkTestNames(t, words)
		default:
			checkAccepted(t, path, words)
		}
	}
	onPages := map[string]bool{}
	for _, page := range pages(t) {
		for _, block := range blocks(t, page) {
			commands, _ := block.commands()
			for _, command := range commands {
				command, _, _ = strings.Cut(command, " # ")
				onPages[strings.TrimSpace(command)] = true
			}
		}
		t.Run(page, func(t *testing.T) {
			for _, words := range inline(t, page) {
				check(t, words)
			}
		})
	}
	for command := range elsewhere {
		if !onPages[command] {
			t.Errorf("%s is in the list elsewhere, but on no page", command)
		}
		words := strings.Fields(strings.TrimPrefix(command, "bin/"))
		check(t, words)
		if words[0] == "make" &&
			!regexp.MustCompile(`(?m)^(tests )?`+command+`( RACE=-race)?$`).MatchString(read(t, ".ci/run")) {
			t.Errorf("%s: the gate does not run it", command)
		}
	}
	if len(checked) < 40 {
		t.Errorf("found %d commands in the text of pages, want at least 40: %v", len(checked), checked)
	}
}

// checkAccepted checks that a program accepts a command and its flags, by adding --help. Brackets around optional words
// are removed, and placeholders, which are words in capitals, are replaced.
func checkAccepted(t *testing.T, path string, words []string) {
	t.Helper()
	command := strings.Join(words, " ")
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "…" })
	for i, word := range words {
		words[i] = regexp.MustCompile(`^[A-Z]+$`).ReplaceAllString(strings.Trim(word, `[]"'`), "1") // valid as a number too
	}
	help := exec.Command(filepath.Join(path, words[0]), append(words[1:], "--help")...)
	help.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	output, err := help.CombinedOutput()
	if words[0] == "muster-agent" && strings.Contains(string(output), "  "+command+" ") {
		return // it prints its usage with all commands, and fails
	}
	if err != nil {
		t.Errorf("%s with --help: %v\n%s", command, err, output)
	}
}

// checkTestNames checks that the packages and tests that a `go test` command names exist.
func checkTestNames(t *testing.T, words []string) {
	t.Helper()
	command, tests := strings.Join(words, " "), ""
	for i, word := range words {
		switch {
		case word == "-run" || word == "-bench":
			if name := strings.Trim(words[i+1], "'"); name != "^$" && name != "." {
				tests = name
			}
		case strings.HasPrefix(word, "./"):
			all, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(word, "..."), "*_test.go"))
			if err != nil || len(all) == 0 && !strings.HasSuffix(word, "...") {
				t.Errorf("%s: %s has no tests (%v)", command, word, err)
			}
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(word, "..."))); err != nil {
				t.Errorf("%s: %v", command, err)
			}
			if tests != "" && !slices.ContainsFunc(all, func(file string) bool {
				content, err := os.ReadFile(file)
				return err == nil && regexp.MustCompile(`(?m)^func (Test|Benchmark)?\w*(`+tests+`)`).Match(content)
			}) {
				t.Errorf("%s: %s has no test named %s", command, word, tests)
			}
		}
	}
}
