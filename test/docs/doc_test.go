// Package docs runs the commands of README.md and docs/ unmodified on the embedded control plane, and checks that
// links, reasons, metrics and commands that the pages name exist.
package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testcluster"
)

// installPages are the pages that install Muster. They share a cluster without it, in this order.
var installPages = []string{"docs/operate/install.md", "docs/operate/tracing.md"}

// pageTimeout bounds all commands of a page, on a machine that is busy with other tests.
const pageTimeout = 10 * time.Minute

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, SimNodes: 4, SimGPUs: 8, Operator: true})
}

// TestCommandsOfPagesPrintWhatPagesShow runs every command block of every page, except the commands in elsewhere. Pages
// that start a cluster use that one, in parallel with the others; most pages share the cluster of these tests, which
// has Muster.
func TestCommandsOfPagesPrintWhatPagesShow(t *testing.T) {
	programs := programsOfPages(t)
	before := filesOfRoot(t)
	t.Run("pages", func(t *testing.T) {
		t.Run("own clusters", func(t *testing.T) {
			t.Parallel()
			t.Run("installation", func(t *testing.T) {
				terminal := &shell{programs: programs}
				terminal.up(t, "bin/muster up --ephemeral --nodes 0 --no-operator")
				for _, page := range installPages {
					t.Run(page, terminal.runs(page))
				}
			})
			for _, page := range pages(t) {
				if startsCluster(t, page) {
					t.Run(page, (&shell{programs: programs}).runs(page))
				}
			}
		})
		t.Run("shared cluster", func(t *testing.T) {
			t.Parallel()
			terminal := &shell{programs: programs, kubeconfig: testcluster.Get(t).Kubeconfig}
			for _, page := range pages(t) {
				if !slices.Contains(installPages, page) && !startsCluster(t, page) {
					t.Run(page, terminal.runs(page))
				}
			}
		})
	})
	if after := filesOfRoot(t); !slices.Equal(after, before) {
		t.Errorf("commands of the pages left files in the project's root, which had %v and has %v", before, after)
	}
}

// filesOfRoot returns the names of the files and folders in the project's root, sorted.
func filesOfRoot(t *testing.T) []string {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

// startsCluster reports whether a page starts the cluster that its commands use.
func startsCluster(t *testing.T, page string) bool {
	return strings.Contains(read(t, page), "\n$ bin/muster up ")
}

// shell runs the commands of pages; programs is a folder with the programs that they use.
type shell struct {
	programs, kubeconfig string
}

// runs returns a test that runs all commands of a page in one shell, from top to bottom.
func (s *shell) runs(page string) func(*testing.T) {
	return func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
		defer cancel()
		var steps []block
		for _, block := range blocks(t, page) {
			switch block.language {
			case "sh", "console":
				steps = append(steps, s.step(t, block))
			case "yaml":
				if strings.HasPrefix(block.text, "apiVersion: ") && !strings.Contains(block.text, "config.muster.dev") {
					s.pipe(ctx, t, "kubectl apply --dry-run=server -f -", block)
				}
			case "python":
				if _, err := exec.LookPath("python3"); err == nil {
					s.pipe(ctx, t, "python3 -c 'import ast, sys; ast.parse(sys.stdin.read())'", block)
				}
			case "promql":
				for _, metric := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(block.text, -1) {
					if !strings.Contains(read(t, "docs/operate/metrics.md"), "`"+metric+"`") {
						t.Errorf("%s uses the metric %s, which docs/operate/metrics.md does not list", page, metric)
					}
				}
			}
		}
		s.run(ctx, t, steps)
	}
}

// step turns a block into a script: it leaves out the commands in elsewhere, and starts a cluster where the block does.
func (s *shell) step(t *testing.T, b block) (step block) {
	t.Helper()
	commands, shows := b.commands()
	step.shows = shows
	for _, line := range commands {
		command, _, _ := strings.Cut(line, " # ")
		switch command = strings.TrimSpace(command); {
		case elsewhere[command] != "":
			step.shows = nil
		case strings.HasPrefix(command, "bin/muster up "):
			s.up(t, command)
			step.shows = nil
		case command == "export KUBECONFIG=…":
			// KUBECONFIG is that of the cluster that the page has started
		case b.language == "console" && strings.Contains(command, "muster explain"):
			step.text += line + " || [ $? = 1 ]\n" // it exits with 1 if the job is pending
		default:
			step.text += line + "\n"
		}
	}
	return step
}

// run runs the steps of a page, and compares the output of each with the lines that the page shows.
func (s *shell) run(ctx context.Context, t *testing.T, steps []block) {
	t.Helper()
	const done = "== a block is done ==\n"
	script := ""
	for _, step := range steps {
		script += step.text + "printf '" + done[:len(done)-1] + "\\n'\n"
	}
	output, err := s.command(ctx, script).CombinedOutput()
	parts := strings.Split(string(output), done)
	for i, step := range steps {
		if i == len(parts)-1 {
			t.Fatalf("these commands failed: %v\n%s\noutput:\n%s", err, step.text, parts[i])
		}
		for _, line := range step.shows {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*")
			if !regexp.MustCompile(pattern).MatchString(parts[i]) {
				t.Fatalf("the page says that these commands print %q:\n%s\noutput:\n%s", line, step.text, parts[i])
			}
		}
	}
}

// pipe pipes a block into a command, which must succeed.
func (s *shell) pipe(ctx context.Context, t *testing.T, command string, block block) {
	t.Helper()
	reader := s.command(ctx, command)
	reader.Stdin = strings.NewReader(block.text)
	if output, err := reader.CombinedOutput(); err != nil {
		t.Errorf("%s failed with this block: %v\n%s\noutput:\n%s", command, err, block.text, output)
	}
}

// command returns a command that runs the script in the project's root, and ends at the first failure.
func (s *shell) command(ctx context.Context, script string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	shell.Dir = root
	shell.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "PATH="+s.programs+":"+os.Getenv("PATH"))
	return shell
}

// up starts a cluster with a command that keeps it running until the end of the test. Later commands use that cluster.
func (s *shell) up(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	s.kubeconfig = testcluster.Another(t, filepath.Join(root, words[0]), words[1:]...)
}

// programsOfPages returns a folder with the programs that pages use: the built ones, muster's kubectl, and the helm of
// test/chart.
func programsOfPages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	helm := exec.Command("go", "tool", "-n", "helm")
	helm.Dir = filepath.Join(root, "test", "chart")
	path, err := helm.Output()
	if err != nil {
		t.Fatalf("building helm: %v", err)
	}
	paths := map[string]string{"helm": strings.TrimSpace(string(path))}
	for _, built := range []string{"muster", "kubectl-muster", "muster-operator", "muster-agent"} {
		paths[built] = filepath.Join(root, "bin", built)
	}
	for program, path := range paths {
		if err := os.Symlink(path, filepath.Join(dir, program)); err != nil {
			t.Fatal(err)
		}
	}
	kubectl := "#!/bin/sh\nexec " + paths["muster"] + " kubectl \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
