// Package docs runs the commands of the pages for users, as they stand, on the embedded control plane.
package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testcluster"
)

// root is the project's, from here.
var root, _ = filepath.Abs("../..")

// pages are those whose blocks marked `sh` people run from top to bottom, on a cluster with Muster.
var pages = []string{"first-jobs.md", "operating.md", "troubleshooting.md", "moving.md"}

// patience bounds all commands of a page, on a machine that is busy with other tests.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, SimNodes: 4, SimGPUs: 8, Operator: true})
}

func TestTheCommandsOfThePagesDoWhatThePagesSay(t *testing.T) {
	cluster := testcluster.Get(t)
	programs := commands(t)
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, block := range blocks(t, page) {
				shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", block.commands)
				shell.Dir = root
				shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "TMPDIR="+t.TempDir(), "PATH="+programs+":"+os.Getenv("PATH"))
				said, err := shell.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s\nsaid:\n%s", err, block.commands, said)
				}
				for _, line := range block.says {
					if !strings.Contains(string(said), line) {
						t.Fatalf("the page says that this prints %q:\n%s\nit said:\n%s", line, block.commands, said)
					}
				}
			}
		})
	}
}

// commands is a folder with the programs that pages name: muster as it was built, and the kubectl in it.
func commands(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	muster := filepath.Join(root, "bin", "muster")
	if err := os.Symlink(muster, filepath.Join(dir, "muster")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\nexec "+muster+" kubectl \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// block is commands of a page, and the lines of the block `text` right after them, which are among what they print.
type block struct {
	commands string
	says     []string
}

// blocks reads the blocks of a page.
func blocks(t *testing.T, page string) (found []block) {
	t.Helper()
	language, lines, afterCommands := "", []string(nil), false
	for line := range strings.Lines(read(t, page)) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case !isFence && language == "":
			afterCommands = afterCommands && strings.TrimSpace(line) == ""
		case !isFence:
			lines = append(lines, line)
		case language == "":
			language, lines = strings.TrimSpace(fence)+" ", nil
		default:
			switch {
			case language == "sh ":
				found = append(found, block{commands: strings.Join(lines, "")})
			case language == "text " && afterCommands:
				for _, line := range lines {
					found[len(found)-1].says = append(found[len(found)-1].says, strings.TrimSpace(line))
				}
			}
			afterCommands, language = language == "sh ", ""
		}
	}
	if len(found) == 0 {
		t.Fatalf("docs/%s has no block of commands: it is a page of such", page)
	}
	return found
}
