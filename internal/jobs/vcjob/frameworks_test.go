package vcjob

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestPluginPytorchRanksWorkersAfterTheMaster(t *testing.T) {
	job := newJob().with("main", 1).with("worker", 2).plugin("pytorch", "--master=main", "--port", "3333")
	got := see(t, job.Job, admitted("main", 1, "worker", 2), nil)
	v := variables(made(t, got, "job-worker-1"))
	for name, want := range map[string]string{"MASTER_ADDR": "job-main-0.job", "MASTER_PORT": "3333", "WORLD_SIZE": "3",
		"RANK": "2", "VC_MAIN_HOSTS": "from job-svc"} {
		if v[name] != want {
			t.Errorf("%s is %q, want %q", name, v[name], want)
		}
	}
	if ports := made(t, got, "job-main-0").Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 3333 {
		t.Errorf("ports %v", ports)
	}
}

// What is no part of the training may want to know where it is, and where there is no master there is none.
func TestPluginPytorchTellsOtherTasksWhereTheMasterIs(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 1).with("watch", 1).plugin("pytorch")
	v := variables(made(t, see(t, job.Job, admitted("master", 1, "worker", 1, "watch", 1), nil), "job-watch-0"))
	if _, ranked := v["RANK"]; ranked || v["MASTER_ADDR"] != "job-master-0.job" || v["WORLD_SIZE"] != "2" {
		t.Errorf("watch is told %v", v)
	}
	alone := newJob().with("worker", 1).plugin("pytorch")
	if v := variables(made(t, see(t, alone.Job, admitted("worker", 1), nil), "job-worker-0")); v["MASTER_ADDR"] != "" ||
		v["RANK"] != "" {
		t.Errorf("without a master a worker is told %v", v)
	}
}

// TestPluginPytorchHasWorkersAwaitTheMaster: those of workers alone, where it is asked for, in a container that asks
// for no more than the pod.
func TestPluginPytorchHasWorkersAwaitTheMaster(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 1, func(task *volcano.TaskSpec) {
		main := &task.Template.Spec.Containers[0].Resources
		main.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
			"nvidia.com/gpu": resource.MustParse("1")}
		main.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"),
			"nvidia.com/gpu": resource.MustParse("1")}
	})
	all := admitted("master", 1, "worker", 1)
	for _, off := range [][]string{nil, {"--wait-master-enabled=false"}, {"--wait-master-timeout=5"}} {
		if pod := made(t, see(t, job.plugin("pytorch", off...).Job, all, nil),
			"job-worker-0"); len(pod.Spec.InitContainers) > 0 {
			t.Errorf("with %v a worker awaits the master", off)
		}
	}
	got := see(t, job.plugin("pytorch", "--wait-master-enabled", "--wait-master-timeout=7",
		"--wait-master-image=example.com/nc:1").Job, all, nil)
	if first := made(t, got, "job-master-0").Spec.InitContainers; len(first) > 0 {
		t.Error("the master awaits itself")
	}
	first := made(t, got, "job-worker-0").Spec.InitContainers
	if len(first) != 1 || first[0].Name != "wait-for-master" || first[0].Image != "example.com/nc:1" {
		t.Fatalf("first there are %+v", first)
	}
	same(t, "resources", corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}, first[0].Resources)
	v := map[string]string{}
	for _, e := range first[0].Env {
		v[e.Name] = e.Value
	}
	if v["MASTER_ADDR"] != "job-master-0.job" || v["MASTER_PORT"] != "23456" {
		t.Errorf("it is told %v", v)
	}
	for _, wrong := range []string{"--wait-master-timeout=0", "--wait-master-timeout=$(id)",
		"--wait-master-enabled=perhaps"} {
		if d := describe(job.plugin("pytorch", wrong).Job, jobs.Facts{}); d.Mistake == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// TestAWorkerWaitsForTheMasterUntilTheTimeout: the command ends once the master listens, and fails if it does not in
// time.
func TestAWorkerWaitsForTheMasterUntilTheTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		listensAt int // look
		stderr    string
		looks     int
	}{
		"it listens later":   {4, "", 4},
		"it never listens":   {1000, "nobody listens at m.job:23 after 9 s\n", 9},
		"it listens at once": {1, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			tools := t.TempDir() // each look takes a second of this clock
			for tool, does := range map[string]string{
				"nc":    `echo >> "$LOOKS"; test "$*" = "-z -w 2 m.job 23" && test $(wc -l < "$LOOKS") -ge "$LISTENS_AT"`,
				"date":  `test "$*" = +%s && echo $((1000 + $(wc -l < "$LOOKS")))`,
				"sleep": `true`,
			} {
				if err := os.WriteFile(filepath.Join(tools, tool), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			looks := filepath.Join(tools, "looks")
			if err := os.WriteFile(looks, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			wait := awaitMaster(&corev1.PodSpec{}, "i", "9").Command
			command := exec.CommandContext(t.Context(), wait[0], wait[1:]...)
			command.Env = []string{"PATH=" + tools + ":" + os.Getenv("PATH"), "MASTER_ADDR=m.job", "MASTER_PORT=23",
				"LOOKS=" + looks, "LISTENS_AT=" + strconv.Itoa(test.listensAt)}
			var said strings.Builder
			command.Stderr = &said
			if err := command.Run(); (err != nil) != (test.stderr != "") || said.String() != test.stderr {
				t.Errorf("it ends with %v and says %q, want %q", err, said.String(), test.stderr)
			}
			done, err := os.ReadFile(looks)
			if n := strings.Count(string(done), "\n"); err != nil || n != test.looks {
				t.Errorf("it has looked %d times, want %d (%v)", n, test.looks, err)
			}
		})
	}
}

func TestPluginTensorflowDescribesTheCluster(t *testing.T) {
	job := newJob().with("ps", 1).with("worker", 2).with("evaluator", 1).plugin("tensorflow")
	got := see(t, job.Job, admitted("ps", 1, "worker", 2, "evaluator", 1), nil)
	var config struct {
		Cluster map[string][]string
		Task    struct {
			Type  string
			Index int
		}
	}
	if err := json.Unmarshal([]byte(variables(made(t, got, "job-worker-1"))["TF_CONFIG"]), &config); err != nil {
		t.Fatal(err)
	}
	alone := newJob().with("worker", 1).plugin("tensorflow")
	if told, is := variables(made(t, see(t, alone.Job, admitted("worker", 1), nil), "job-worker-0"))["TF_CONFIG"]; is {
		t.Errorf("who is alone is told %s", told)
	}
	same(t, "cluster", map[string][]string{"ps": {"job-ps-0.job:2222"},
		"worker": {"job-worker-0.job:2222", "job-worker-1.job:2222"}}, config.Cluster)
	if config.Task.Type != "worker" || config.Task.Index != 1 {
		t.Errorf("task %+v", config.Task)
	}
}

func TestPluginMpiTellsTheMasterTheWorkers(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 2).plugin("mpi")
	got := see(t, job.Job, admitted("master", 1, "worker", 2), nil)
	if hosts := variables(made(t, got, "job-master-0"))["MPI_HOST"]; hosts != "job-worker-0.job,job-worker-1.job" {
		t.Errorf("MPI_HOST %q", hosts)
	}
	if len(got.First) != 4 { // with svc and ssh, which it needs
		t.Errorf("first %q", writes(got))
	}
}

// TestPortsOfPluginsOnTheNetworkOfTheNode: placement is told of them, as two pods do not fit on one node then, and a
// pod lists each once, as the API server demands.
func TestPortsOfPluginsOnTheNetworkOfTheNode(t *testing.T) {
	onNode := func(task *volcano.TaskSpec) {
		task.Template.Spec.HostNetwork = true
		task.Template.Spec.Containers = append(task.Template.Spec.Containers, corev1.Container{Name: "side"})
	}
	for plugin, want := range map[string]map[string]string{
		"pytorch":    {"master": "[23456][]", "worker": "[23456][]"},
		"tensorflow": {"master": "[][]", "worker": "[2222][]"},
		"mpi":        {"master": "[22][]", "worker": "[22][]"},
		"ray":        {"master": "[6379 8265 10001][]", "worker": "[][]"},
	} {
		job := newJob().with("master", 1, onNode).with("worker", 1, onNode).plugin(plugin)
		if plugin == "ray" {
			job.plugin(plugin, "--head=master")
		}
		asked, started := map[string]string{}, map[string]string{}
		for _, set := range describe(job.Job, jobs.Facts{}).PodSets {
			asked[string(set.Name)] = portsOf(set.Template.Spec)
		}
		got := see(t, job.Job, admitted("master", 1, "worker", 1), nil)
		for task := range asked {
			started[task] = portsOf(made(t, got, "job-"+task+"-0").Spec)
		}
		same(t, plugin+": asked", want, asked)
		same(t, plugin+": started", want, started)
	}
}

// portsOf lists the ports of each container.
func portsOf(spec corev1.PodSpec) (out string) {
	for _, c := range spec.Containers {
		var numbers []int32
		for _, p := range c.Ports {
			numbers = append(numbers, p.ContainerPort)
		}
		out += fmt.Sprint(numbers)
	}
	return out
}

func TestPluginHcclrankRanksPods(t *testing.T) {
	own := func(task *volcano.TaskSpec) { task.Template.Annotations = map[string]string{hcclRankKey: "7"} }
	ranked := func(task *volcano.TaskSpec) {
		task.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RANK", Value: "5"}}
	}
	for _, c := range []struct {
		name string
		job  jobBuilder
		want string
	}{
		{"after the masters", newJob().with("main", 2).with("worker", 2).plugin("hcclrank", "--master=main"), "3"},
		{"as the plugin pytorch does",
			newJob().with("main", 1).with("worker", 2).plugin("pytorch", "--master=main").plugin("hcclrank"), "2"},
		{"as the template's variable says", newJob().with("main", 1).with("worker", 2, ranked).plugin("hcclrank"), "5"},
		{"as the template's annotation says", newJob().with("main", 1).with("worker", 2, own).plugin("hcclrank"), "7"},
		{"not what is no part of it", newJob().with("main", 1).with("worker", 2).plugin("hcclrank", "--worker=other"), ""},
	} {
		got := made(t, see(t, c.job.Job, admitted("main", int(c.job.Spec.Tasks[0].Replicas), "worker", 2), nil),
			"job-worker-1").Annotations
		if got[hcclRankKey] != c.want || got[volcano.TaskSpecKey] != "worker" {
			t.Errorf("%s: annotations %v, want the rank %q", c.name, got, c.want)
		}
	}
}

func TestPluginRayStartsRayUnlessTheContainerSaysWhatItRuns(t *testing.T) {
	job := newJob().with("head", 1).with("worker", 1).plugin("ray")
	got := see(t, job.Job, admitted("head", 1, "worker", 1), nil)
	head, worker := made(t, got, "job-head-0").Spec.Containers[0], made(t, got, "job-worker-0").Spec.Containers[0]
	if !strings.HasPrefix(head.Command[2], "ray start --head --block") || len(head.Ports) != 3 {
		t.Errorf("head %q, ports %v", head.Command, head.Ports)
	}
	if want := "ray start --block --address=job-head-0.job:6379"; worker.Command[2] != want {
		t.Errorf("worker %q, want %q", worker.Command, want)
	}
	job.Spec.Tasks[1].Template.Spec.Containers[0].Command = []string{"mine"}
	if c := made(t, see(t, job.Job, admitted("head", 1, "worker", 1), nil),
		"job-worker-0").Spec.Containers[0]; c.Command[0] != "mine" {
		t.Errorf("command %q", c.Command)
	}
}

// People reach the dashboard, and submit to the head, by a Service of its own: that of svc is headless and for all
// pods.
func TestPluginRayGivesTheHeadAService(t *testing.T) {
	for _, argument := range []string{"--clientPort=20001", "--clientServerPort=20001"} {
		job := newJob().with("boss", 1).with("worker", 1).plugin("ray", "--head=boss", "--dashboardPort=80", argument)
		if mistake := describe(job.Job, jobs.Facts{}).Mistake; mistake != nil {
			t.Fatal(mistake.Message)
		}
		got := see(t, job.Job, admitted("boss", 1, "worker", 1), nil)
		var ports []string
		for _, w := range got.First {
			service, is := w.Object().(*corev1.Service)
			if !is || service.Name != "job-head-svc" {
				continue
			}
			for _, port := range service.Spec.Ports {
				ports = append(ports, fmt.Sprintf("%s %d %s", port.Name, port.Port, port.TargetPort.String()))
			}
			if pod := made(t, got, "job-boss-0"); service.Spec.ClusterIP != "" ||
				!labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
				t.Errorf("the Service selects %v, and the head has %v", service.Spec.Selector, pod.Labels)
			}
			if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(made(t, got, "job-worker-0").Labels)) {
				t.Errorf("the Service selects a worker by %v", service.Spec.Selector)
			}
		}
		same(t, "ports", []string{"gcs 6379 6379", "dashboard 80 80", "client-server 20001 20001"}, ports)
	}
	job := newJob().with("head", 1).plugin("ray")
	for length, fits := range map[int]bool{54: true, 55: false} {
		job.Name = strings.Repeat("a", length)
		if mistake := describe(job.Job, jobs.Facts{}).Mistake; (mistake == nil) != fits {
			t.Errorf("a name of %d characters: %v", length, mistake)
		}
	}
}

// TestHostsAreJoinedOncePerPlan: thousands of masters share one text of all hosts.
func TestHostsAreJoinedOncePerPlan(t *testing.T) {
	job := newJob().with("master", 2).with("worker", 3).plugin("mpi")
	got := see(t, job.Job, admitted("master", 2, "worker", 3), nil)
	first, second := variables(made(t, got, "job-master-0"))["MPI_HOST"],
		variables(made(t, got, "job-master-1"))["MPI_HOST"]
	if first == "" || unsafe.StringData(first) != unsafe.StringData(second) {
		t.Errorf("each master has a list of hosts of its own: %q and %q", first, second)
	}
}
