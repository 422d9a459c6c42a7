package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/musterhq/muster/cmd/muster/view"
)

// call runs a command line without access to a cluster.
func call(t *testing.T, arguments ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	streams, _, outBuffer, errBuffer := genericiooptions.NewTestIOStreams()
	code = run(context.Background(), append([]string{"muster"}, arguments...), streams)
	return code, outBuffer.String(), errBuffer.String()
}

func TestBadInputGivesOneLineWithTheNextCommand(t *testing.T) {
	tests := []struct {
		name      string
		arguments []string
		code      int
		says      string
	}{
		{"an unknown command", []string{"qeues"}, exitUsage,
			`unknown command "qeues" (did you mean queues?): see ` + "`muster --help`"},
		{"an unknown flag", []string{"jobs", "--nope"}, exitUsage, "unknown flag: --nope: see `muster jobs --help`"},
		{"a stray argument", []string{"jobs", "x"}, exitUsage, "see `muster jobs --help`"},
		{"an invalid selector", []string{"jobs", "-l", "a=b=c"}, exitUsage, "write key=value"},
		{"an unknown output format", []string{"jobs", "-o", "xml"}, exitUsage, `"xml"`},
		{"an unclosed path", []string{"jobs", "-o", "jsonpath={.items"}, exitUsage,
			"error parsing jsonpath {.items, unclosed action\n"},
		{"a kubeconfig without a cluster", []string{"jobs", "--kubeconfig", "/dev/null"}, exitFailed,
			"/dev/null names no cluster: start one with `muster up`"},
		{"no job to explain", []string{"explain"}, exitUsage, "`muster jobs` lists them"},
		{"an invalid name", []string{"explain", "a/b/c/d"}, exitUsage, "write name, kind/name or namespace/kind/name"},
		{"two namespaces at once", []string{"explain", "a/jobset/x", "-n", "b"}, exitUsage, "leave one of them out"},
		{"no cluster", []string{"jobs"}, exitFailed, "start one with `muster up`"},
		{"an unknown shell", []string{"completion", "tcsh"}, exitUsage, "see `muster completion --help`"},
		{"a missing kubeconfig", []string{"queues", "--kubeconfig", "/nope"}, exitFailed, "check --kubeconfig"},
		{"a server that does not answer", []string{"jobs", "-s", "http://127.0.0.1:1"}, exitFailed,
			"http://127.0.0.1:1 does not answer"},
		{"missing examples", []string{"demo", "--examples", "/nope"}, exitUsage, "--examples"},
		{"a timeout of zero", []string{"demo", "--timeout", "0s"}, exitUsage, "such as 5m"},
		{"up without muster-local", []string{"up"}, exitFailed, "make build"},
		{"down without muster-local", []string{"down", "--dir", "x"}, exitFailed, "make build"},
		{"a missing configuration", []string{"explain", "x", "--operator-config", "/nope"}, exitUsage, "/nope"},
		{"no trace to simulate", []string{"simulate", "--queues", "q"}, exitUsage, "--trace FILE"},
		{"no queues to simulate", []string{"simulate", "--trace", "t"}, exitUsage, "--queues FILE"},
		{"a missing trace file", []string{"simulate", "--trace", "/nope", "--queues", "/nope"}, exitFailed, "/nope"},
		{"fewer nodes", []string{"simulate", "--trace", "t", "--queues", "q", "--nodes", "-3"}, exitUsage, "write +16"},
		{"a pod of nothing", []string{"simulate", "--trace", "t", "--queues", "q", "--per-pod", "0"}, exitUsage, "from 1"},
		{"a simulation as XML", []string{"simulate", "--trace", "t", "--queues", "q", "-o", "xml"}, exitUsage, "-o json"},
		{"the standard input twice", []string{"simulate", "--trace", "-", "--queues", "-"}, exitUsage, "only one of"},
		{"no log to replay", []string{"replay"}, exitUsage, "name one decision log"},
		{"a missing log", []string{"replay", "/nope"}, exitFailed, "no such file"},
		{"nothing to convert", []string{"convert"}, exitUsage, "name at least one file"},
		{"a missing manifest", []string{"convert", "/nope"}, exitFailed, "muster: open /nope: no such file"},
		{"the demo without muster-local", []string{"demo"}, exitFailed, "make build"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := call(t, test.arguments...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if out != "" {
				t.Errorf("output = %q, want none", out)
			}
			if !strings.HasPrefix(errOut, "muster: ") || strings.Count(errOut, "\n") != 1 ||
				!strings.Contains(errOut, test.says) {
				t.Errorf("error output = %q, want one line with %q", errOut, test.says)
			}
		})
	}
}

func TestReplay(t *testing.T) {
	const begin = `{"begin":{"format":4,"options":{}}}` + "\n"
	const pass = `{"pass":"2026-01-01T00:00:00Z","decisions":null}` + "\n"
	tests := []struct {
		name, log string
		code      int
		out, says string
	}{
		{"a log that replays", begin + pass + pass, exitDone, "2 passes, 0 decisions: identical\n", ""},
		{"a log that differs", begin + strings.Replace(pass, "null", `[{"Key":"x"}]`, 1), exitFailed,
			"line 2, pass of 2026-01-01T00:00:00.000Z, decision 1 differs:\n  recorded {\"Key\":\"x\"}\n  replayed nothing\n", ""},
		{"an empty log", "", exitFailed, "", "has no decisions"},
		{"a file that is not a log", "hello\n", exitFailed, "", "line 1 of the decision log"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "decisions.log")
			if err := os.WriteFile(path, []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errOut := call(t, "replay", path)
			if code != test.code || out != test.out || !strings.Contains(errOut, test.says) {
				t.Errorf("exit code %d, output %q, error output %q", code, out, errOut)
			}
		})
	}
}

func TestConvert(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	queue := write("queue.yaml", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n")
	config := write("config.yaml", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueConfig\nmetadata: {name: far}\n")
	code, out, errOut := call(t, "convert", queue, config)
	if want := "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueConfig\nmetadata: {name: far}\n"; code != exitDone ||
		out != want {
		t.Errorf("exit code %d, output %q, want %q", code, out, want)
	}
	if !strings.HasPrefix(errOut, "MultiKueueConfig far: ") {
		t.Errorf("error output %q, want the kind that is not served", errOut)
	}
	bad := write("bad.yaml", "a: b: c\n")
	if code, _, errOut := call(t, "convert", bad); code != exitFailed ||
		!strings.HasPrefix(errOut, "muster: "+bad+": document 1: ") {
		t.Errorf("exit code %d, error output %q, want the file and the document", code, errOut)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, arguments := range [][]string{nil, {"--help"}, {"jobs", "-h"}, {"up", "--help"}, {"version"},
		{"version", "-o", "json"}, {"completion", "fish"}} {
		code, out, errOut := call(t, arguments...)
		if code != exitDone || out == "" || errOut != "" {
			t.Errorf("%v: exit code %d, %d bytes of output, error output %q", arguments, code, len(out), errOut)
		}
	}
}

func TestHelpOfTheKubectlPluginUsesItsName(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	if code := run(context.Background(), []string{filepath.Join("/usr/bin", pluginName), "jobs", "--help"},
		streams); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	if !strings.Contains(out.String(), "kubectl muster jobs") {
		t.Errorf("help does not have `kubectl muster jobs`:\n%s", out)
	}
}

func TestChooseRefusesToGuess(t *testing.T) {
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	two := []view.Job{{Kind: "JobSet", Name: "x"}, {Kind: "Job", Name: "x"}}
	if _, err := choose(two, "x", "ml", streams); exitCode(err) != exitUsage ||
		!strings.Contains(err.Error(), "jobset/x, job/x") {
		t.Errorf("two jobs: got error %v, want one that names both", err)
	}
	if _, err := choose(nil, "x", "ml", streams); exitCode(err) != exitNotFound {
		t.Errorf("no job: got error %v, want not found", err)
	}
	if job, err := choose(two[1:], "x", "ml", streams); err != nil || job.Kind != "Job" {
		t.Errorf("one job: got %v, %v, want the Job", job, err)
	}
}

func TestUnusableKubeconfigIsReported(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "/nope")
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	if code := run(t.Context(), []string{"muster", "jobs"}, streams); code != exitFailed ||
		!strings.Contains(errOut.String(), "KUBECONFIG is /nope") {
		t.Errorf("exit code %d and error output %s, want one that names KUBECONFIG", code, errOut)
	}
}

// TestKubeconfigWithoutCurrentContextIsReported: the error must not say that localhost:8080 does not answer.
func TestKubeconfigWithoutCurrentContextIsReported(t *testing.T) {
	for contexts, says := range map[string]string{
		`[]`: "name a cluster with --cluster",
		`[{"name": "b", "context": {"cluster": "a"}}, {"name": "a", "context": {"cluster": "a"}}]`: "has no current context: name one of a, b by --context, or for good by `muster kubectl config use-context a`",
	} {
		kubeconfig := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(kubeconfig,
			[]byte(`{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": `+contexts+`}`),
			0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := call(t, "jobs", "--kubeconfig", kubeconfig); code != exitFailed ||
			!strings.Contains(errOut, says) {
			t.Errorf("with contexts %s: exit code %d, %s", contexts, code, errOut)
		}
	}
}

func TestKubectlErrorSaysHowToSelectACluster(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "here",
		"clusters": [{"name": "here", "cluster": {"server": "http://localhost:8080"}}], "contexts": [{"name": "here", "context": {"cluster": "here"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	undecided := filepath.Join(t.TempDir(), "undecided")
	if err := os.WriteFile(undecided, []byte(`{"apiVersion": "v1", "kind": "Config",
		"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
		"contexts": [{"name": "there", "context": {"cluster": "a"}}, {"name": "here", "context": {"cluster": "a"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "The connection to the server localhost:8080 was refused"
	for name, test := range map[string]struct {
		kubeconfig  string
		arguments   []string
		said, means string
	}{
		"no kubeconfig":               {"/nope", nil, refused, "muster: KUBECONFIG is /nope, which is not there"},
		"KUBECONFIG with a cluster":   {kubeconfig, nil, refused, ""},
		"--kubeconfig with a cluster": {"/nope", []string{"--kubeconfig", kubeconfig}, refused, ""},
		"--server with that address":  {"/nope", []string{"--server=localhost:8080"}, refused, ""},
		"no current context": {undecided, nil, refused,
			"muster: the kubeconfig has no current context: name one of here, there by --context"},
		"--cluster with a name": {undecided, []string{"--cluster=a"}, refused, ""},
		"another error":         {"/nope", nil, `Error from server (NotFound): pods "x" not found`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.kubeconfig)
			root := kubectl.NewDefaultKubectlCommand()
			if err := root.ParseFlags(test.arguments); err != nil {
				t.Fatal(err)
			}
			last := extendKubectlError(test.said, clusterFlags(root))
			if !strings.HasPrefix(last, test.said+"\n") || !strings.Contains(last, test.means) ||
				test.means == "" && strings.Contains(last, "muster") {
				t.Errorf("last lines of kubectl = %q", last)
			}
		})
	}
}

// TestExplainOfScheduleNamesItsLastRun: a schedule is not itself a job, and the error says what to explain instead.
func TestExplainOfScheduleNamesItsLastRun(t *testing.T) {
	schedule := &view.Schedule{Namespace: "ml", Name: "nightly", Times: "@daily", Message: "Cron active: 1 job(s)",
		Runs: []string{"nightly-2", "nightly-1"}}
	err := scheduleError(schedule)
	for _, part := range []string{`ml/latticejob/nightly runs by its schedule "@daily" (Cron active: 1 job(s))`,
		"muster explain -n ml latticejob/nightly-2"} {
		if exitCode(err) != exitNotFound || !strings.Contains(err.Error(), part) {
			t.Errorf("%d, %v: want %d and %s", exitCode(err), err, exitNotFound, part)
		}
	}
	schedule.Runs = nil
	if err := scheduleError(schedule); exitCode(err) != exitNotFound ||
		!strings.Contains(err.Error(), "muster kubectl describe -n ml latticejob/nightly") {
		t.Errorf("a schedule without a run: got error %v", err)
	}
}

func TestThisBuildReadsBuildInfo(t *testing.T) {
	got := thisBuild(&debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Deps:     []*debug.Module{{Path: "k8s.io/kubectl", Version: "v0.37.1"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	})
	if got.Version != "v1.2.3" || got.Kubernetes != "v0.37.1" || got.Commit != "abc" || !got.Modified {
		t.Errorf("build = %+v", got)
	}
	version = "0.2.0"
	defer func() { version = "" }()
	if got := thisBuild(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}); got.Version != "0.2.0" {
		t.Errorf("version of a build from source = %s, linked as %s", got.Version, version)
	}
}

// TestErrorsHaveNoControlCharacters: what a command repeats, here a path, goes through one writer.
func TestErrorsHaveNoControlCharacters(t *testing.T) {
	for _, arguments := range [][]string{{"replay", "/no\x1b[2J\u202efile"}, {"convert", "/no\x1b[2J\u202efile"},
		{"explain", "a\x1b[2J\u202e/b/c/d"}} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := run(t.Context(), append([]string{"muster"}, arguments...), streams)
		if code == exitDone || !strings.Contains(errOut.String(), `\x1b[2J\u202e`) ||
			strings.ContainsAny(errOut.String()+out.String(), "\x1b\u202e") {
			t.Errorf("%q: exit code %d, output %q, errors %q", arguments, code, out, errOut)
		}
	}
}
