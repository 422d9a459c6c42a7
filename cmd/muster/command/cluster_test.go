package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/testcluster"
)

// asMuster is the environment variable that makes this test binary run as muster, to test code that exits the process.
const asMuster = "MUSTER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asMuster) != "" {
		os.Exit(Main(os.Args))
	}
	testcluster.Main(m, testcluster.Options{})
}

// muster runs a command line against the test cluster.
func muster(t *testing.T, cluster *testcluster.Cluster, arguments ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("KUBECONFIG", cluster.Kubeconfig)
	streams, _, outBuffer, errBuffer := genericiooptions.NewTestIOStreams()
	code = run(t.Context(), append([]string{"muster"}, arguments...), streams)
	return code, outBuffer.String(), errBuffer.String()
}

// pendingWorkload creates a Workload in a queue that does not exist, so that it waits forever.
func pendingWorkload(t *testing.T, cluster *testcluster.Cluster, namespace, name string) *kueue.Workload {
	t.Helper()
	w := workload(namespace, name, "nowhere", 2)
	if err := cluster.Client.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// workload returns a Workload with the given number of pods of 2 CPUs each.
func workload(namespace, name, queue string, pods int32) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": name}},
		Spec: kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(queue), PodSets: []kueue.PodSet{{
			Name: "main", Count: pods,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: "example.com/x",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
				}},
			}},
		}}},
	}
}

func TestCommandsOnACluster(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	pendingWorkload(t, cluster, namespace, "one")
	pendingWorkload(t, cluster, namespace, "two")

	tests := []struct {
		name      string
		arguments []string
		code      int
		out       []string // substrings of the output
		errOut    string
	}{
		{"jobs in a namespace", []string{"jobs", "-n", namespace}, exitDone,
			[]string{"JOB", "workload/one", "workload/two", "nowhere", "Pending", "0/2", "4 cpu",
				"waits for its first decision"}, ""},
		{"jobs in all namespaces", []string{"jobs", "-A", "--no-headers"}, exitDone,
			[]string{namespace + "   workload/one"}, ""},
		{"jobs by label", []string{"jobs", "-n", namespace, "-l", "team=two", "-o", "name"}, exitDone,
			[]string{"workload.kueue.x-k8s.io/two\n"}, ""},
		{"no jobs", []string{"jobs", "-n", "default"}, exitDone, nil, "No jobs found in default namespace.\n"},
		{"no queues in a namespace", []string{"queues", "-n", namespace}, exitDone, nil,
			"No queues found in " + namespace + " namespace.\n"},
		{"jobs through a path", []string{"jobs", "-n", namespace, "-o", "jsonpath={.items[*].name}"}, exitDone,
			[]string{"one two"}, ""},
		{"explain a waiting job", []string{"explain", "one", "-n", namespace}, exitFailed,
			[]string{namespace + "/workload/one is pending", "main: 2 pods x 2 cpu", "no LocalQueue of that name"}, ""},
		{"explain a missing job", []string{"explain", "three", "-n", namespace}, exitNotFound, nil,
			`muster: no job "three" in namespace ` + namespace},
		{"explain a kind that is not a job", []string{"explain", namespace + "/pods/one"}, exitNotFound, nil,
			`muster: "pod" is not a kind of job: write one of jobset, genericjob, trainingjob, latticejob, vcjob, job, workload; ` + "`muster jobs -n " + namespace +
				"` lists the jobs"},
		{"complete a job", []string{"__complete", "explain", "-n", namespace, "workload/o"}, exitDone,
			[]string{"workload/one\n:4"}, "Completion ended"},
		{"complete a name", []string{"__complete", "explain", "-n", namespace, "tw"}, exitDone, []string{"two\n:4"},
			"Completion ended"},
		{"complete a job in a namespace", []string{"__complete", "explain", namespace + "/workload/o"}, exitDone,
			[]string{namespace + "/workload/one\n:4"}, "Completion ended"},
		{"complete a kind in a namespace", []string{"__complete", "explain", namespace + "/"}, exitDone,
			[]string{namespace + "/workload/one\n" + namespace + "/workload/two\n:4"}, "Completion ended"},
		{"complete a namespace", []string{"__complete", "jobs", "-n", namespace[:len(namespace)-1]}, exitDone,
			[]string{namespace + "\n", ":4"}, "Completion ended"},
		{"complete a context", []string{"__complete", "explain", "--context", ""}, exitDone, []string{"\n:4"},
			"Completion ended"},
		{"explain as YAML", []string{"explain", namespace + "/workload/one", "-o", "yaml"}, exitFailed,
			[]string{"kind: Explanation", "name: one"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := muster(t, cluster, test.arguments...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, part := range test.out {
				if !strings.Contains(out, part) {
					t.Errorf("output does not have %q:\n%s", part, out)
				}
			}
			if !strings.HasPrefix(errOut, test.errOut) || (test.errOut == "" && errOut != "") {
				t.Errorf("error output %q, want %q", errOut, test.errOut)
			}
		})
	}
	if code, out, _ := muster(t, cluster, "__complete", "explain", "-n", "default",
		namespace+"/workload/o"); code != exitDone || out != ":4\n" {
		t.Errorf("completion in another namespace than that of -n = %q (exit code %d), want nothing", out, code)
	}
}

func TestWatchAppendsWhatChanged(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	w := pendingWorkload(t, cluster, namespace, "one")

	t.Setenv("KUBECONFIG", cluster.Kubeconfig)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	reader, writer := io.Pipe()
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: io.Discard}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"muster", "jobs", "-n", namespace, "-w", "-o", "json"}, streams)
		_ = writer.Close()
	}()

	var lists = json.NewDecoder(bufio.NewReader(reader))
	next := func() view.Job {
		t.Helper()
		var list view.JobList
		if err := lists.Decode(&list); err != nil || len(list.Items) != 1 {
			t.Fatalf("first list = %v, %v, want one job", list.Items, err)
		}
		return list.Items[0]
	}
	if job := next(); job.State != view.Pending {
		t.Errorf("state at first = %s, want Pending", job.State)
	}
	w.Spec.Active = new(bool)
	if err := cluster.Client.Update(ctx, w); err != nil {
		t.Fatal(err)
	}
	if job := next(); job.State != view.Suspended {
		t.Errorf("state after the deactivation = %s, want Suspended", job.State)
	}
	if err := cluster.Client.Delete(ctx, w); err != nil {
		t.Fatal(err)
	}
	if job := next(); job.State != "Deleted" {
		t.Errorf("state after the deletion = %s, want Deleted", job.State)
	}
	cancel()
	if code := <-ended; code != exitDone {
		t.Errorf("exit code after the end of the watch = %d, want 0", code)
	}
}

// asKubectl runs `muster kubectl` in a process of its own, since kubectl exits it.
func asKubectl(t *testing.T, cluster *testcluster.Cluster, arguments ...string) (code int, out, errOut string) {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0], append([]string{"kubectl"}, arguments...)...)
	program.Env = append(os.Environ(), asMuster+"=1", "KUBECONFIG="+cluster.Kubeconfig)
	var failures bytes.Buffer
	program.Stderr = &failures
	text, err := program.Output()
	if program.ProcessState == nil {
		t.Fatal(err)
	}
	return program.ProcessState.ExitCode(), string(text), failures.String()
}

// TestKubectlFindsQueuesAndFlavorsByTheNamesOfKueue, although Volcano's queues, whose full name that is, are served
// too. Those have their short name and their full one.
func TestKubectlFindsQueuesAndFlavorsByTheNamesOfKueue(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	for _, object := range []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "short-names-flavor"}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpu"},
			Spec: kueue.LocalQueueSpec{ClusterQueue: "lab"}},
		&scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "short-names-volcano"}},
	} {
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"get queues -o name":                                           "localqueue.kueue.x-k8s.io/gpu\n",
		"get queue -o name":                                            "localqueue.kueue.x-k8s.io/gpu\n",
		"get queue gpu -o name":                                        "localqueue.kueue.x-k8s.io/gpu\n",
		"get queues gpu -o name":                                       "localqueue.kueue.x-k8s.io/gpu\n",
		"get lq/gpu -o name":                                           "localqueue.kueue.x-k8s.io/gpu\n",
		"get lq -o name":                                               "localqueue.kueue.x-k8s.io/gpu\n",
		"get flavors short-names-flavor -o name":                       "resourceflavor.kueue.x-k8s.io/short-names-flavor\n",
		"get flavor short-names-flavor -o name":                        "resourceflavor.kueue.x-k8s.io/short-names-flavor\n",
		"get q short-names-volcano -o name":                            "queue.scheduling.volcano.sh/short-names-volcano\n",
		"get queues.scheduling.volcano.sh short-names-volcano -o name": "queue.scheduling.volcano.sh/short-names-volcano\n",
	} {
		if code, out, errOut := asKubectl(t, cluster,
			append(strings.Fields(command), "-n", namespace)...); code != 0 || out != want {
			t.Errorf("kubectl %s: exit code %d, output %q, want %q; %s", command, code, out, want, errOut)
		}
	}
	if code, out, errOut := asKubectl(t, cluster, "describe", "queue", "gpu", "-n", namespace); code != 0 ||
		!strings.Contains(out, "LocalQueue") {
		t.Errorf("kubectl describe queue gpu: exit code %d, output %q; %s", code, out, errOut)
	}
}

func TestKubectlKeepsItsFlagsAndItsExitCode(t *testing.T) {
	cluster := testcluster.Get(t)
	tests := []struct {
		name      string
		arguments []string
		code      int
		out       string
	}{
		{"a command", []string{"kubectl", "get", "namespace", "default", "-o", "name"}, 0, "namespace/default\n"},
		{"help of kubectl", []string{"kubectl", "get", "--help"}, 0, "Display one or many resources"},
		{"not found", []string{"kubectl", "get", "namespace", "nope"}, 1, ""},
		{"a difference", []string{"kubectl", "diff", "-f", "-"}, 1, "+"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			program := exec.CommandContext(t.Context(), os.Args[0], test.arguments...)
			program.Env = append(os.Environ(), asMuster+"=1", "KUBECONFIG="+cluster.Kubeconfig)
			program.Stdin = strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: default}\n")
			out, err := program.Output()
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != test.code || !strings.Contains(string(out), test.out) {
				t.Errorf("exit code %d and output %q, want %d and %q", code, out, test.code, test.out)
			}
		})
	}
}
