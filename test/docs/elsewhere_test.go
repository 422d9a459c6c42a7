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

// elsewhere are the commands of blocks that are not run here, and why not. What they name is there all the same: they are looked at
// as those within text are.
var elsewhere = map[string]string{
	"make demo":      "the gate runs it by itself",
	"make test":      "this is part of it",
	"make test-node": "the gate runs it by itself",
	"make image":     "the gate runs it by itself",
	"kubectl apply --server-side -f bin/muster.yaml": "make test-node installs so",
	// An API server never ends the deletion of a definition whose storage it is only about to begin.
	"kubectl delete crd -l muster.dev/served=true": "test/chart deletes the definitions after each test",
	"bin/muster down":             "local/cmd/muster-local's tests stop clusters by it",
	"muster replay decisions.log": "test/scenario replays what an operator wrote; the operator of these tests writes none",
}

// programs are those that commands within text begin with, and that can say whether they know the rest of them.
var programs = []string{"muster", "muster-operator", "muster-agent", "kubectl", "helm", "make", "go"}

// TestCommandsThatAreNotRunNameWhatThereIs: those within text, and those that run elsewhere.
func TestCommandsThatAreNotRunNameWhatThereIs(t *testing.T) {
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
			goTestNamesWhatThereIs(t, words)
		default:
			knows(t, path, words)
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
			t.Errorf("%s is on the list of commands that run elsewhere, and on no page", command)
		}
		words := strings.Fields(strings.TrimPrefix(command, "bin/"))
		check(t, words)
		if words[0] == "make" && !regexp.MustCompile(`(?m)^(tests )?`+command+`( RACE=-race)?$`).MatchString(read(t, ".ci/run")) {
			t.Errorf("%s: the gate does not run it", command)
		}
	}
	if len(checked) < 40 {
		t.Errorf("only found %v", checked)
	}
}

// knows has a program say whether it knows a command and its flags, without doing it: of what is in brackets any may be there, and
// words in capitals stand for others.
func knows(t *testing.T, path string, words []string) {
	t.Helper()
	command := strings.Join(words, " ")
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "…" })
	for i, word := range words {
		words[i] = regexp.MustCompile(`^[A-Z]+$`).ReplaceAllString(strings.Trim(word, `[]"'`), "1") // also a number
	}
	ask := exec.Command(filepath.Join(path, words[0]), append(words[1:], "--help")...)
	ask.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	said, err := ask.CombinedOutput()
	if words[0] == "muster-agent" && strings.Contains(string(said), "  "+command+" ") {
		return // it ends with wrong use, and tells all that it knows
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, said)
	}
}

// goTestNamesWhatThereIs looks for the packages and the tests that a `go test` names.
func goTestNamesWhatThereIs(t *testing.T, words []string) {
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
				t.Errorf("%s: no tests are in %s: %v", command, word, err)
			}
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(word, "..."))); err != nil {
				t.Errorf("%s: %v", command, err)
			}
			if tests != "" && !slices.ContainsFunc(all, func(file string) bool {
				content, err := os.ReadFile(file)
				return err == nil && regexp.MustCompile(`(?m)^func (Test|Benchmark)?\w*(`+tests+`)`).Match(content)
			}) {
				t.Errorf("%s: no test in %s is called so", command, word)
			}
		}
	}
}
