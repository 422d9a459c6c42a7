package vcjob

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// variables of the main container of a pod, by name.
func variables(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		out[v.Name] = v.Value
		if v.ValueFrom != nil {
			out[v.Name] = "from " + v.ValueFrom.ConfigMapKeyRef.Name
		}
	}
	return out
}

func TestPluginEnvTellsPodsTheirNumber(t *testing.T) {
	job := newJob().with("worker", 2, func(task *volcano.TaskSpec) {
		task.Template.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	}).plugin("env")
	pod := made(t, see(t, job.Job, admitted("worker", 2), nil), "job-worker-1")
	same(t, "variables", map[string]string{"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"}, variables(pod))
	if env := pod.Spec.InitContainers[0].Env; len(env) != 2 {
		t.Errorf("init containers have %v", env)
	}
}

func TestPluginSvcMakesHostsBeforePods(t *testing.T) {
	job := newJob().with("ps", 1).with("big-worker", 2).plugin("svc", "--publish-not-ready-addresses=true")
	got := see(t, job.Job, admitted("ps", 1, "big-worker", 2), nil)
	if want := []string{"create v1.ConfigMap job-svc", "create v1.Service job", "create v1.NetworkPolicy job"}; !slices.Equal(writes(got)[:3], want) || len(got.First) != 3 {
		t.Fatalf("first %q, want %q", writes(got), want)
	}
	hosts := got.First[0].Object().(*corev1.ConfigMap).Data
	same(t, "hosts", map[string]string{"ps.host": "job-ps-0.job", "VC_PS_HOSTS": "job-ps-0.job", "VC_PS_NUM": "1",
		"big-worker.host": "job-big-worker-0.job\njob-big-worker-1.job", "big_worker.host": "job-big-worker-0.job\njob-big-worker-1.job", "VC_BIG_WORKER_HOSTS": "job-big-worker-0.job,job-big-worker-1.job", "VC_BIG_WORKER_NUM": "2"}, hosts)
	if s := got.First[1].Object().(*corev1.Service).Spec; s.ClusterIP != corev1.ClusterIPNone || !s.PublishNotReadyAddresses {
		t.Errorf("Service %+v", s)
	}
	pod := made(t, got, "job-big-worker-1")
	if pod.Spec.Hostname != "job-big-worker-1" || pod.Spec.Subdomain != "job" {
		t.Errorf("host %s.%s", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	same(t, "variables", map[string]string{"VC_PS_HOSTS": "from job-svc", "VC_PS_NUM": "from job-svc", "VC_BIG_WORKER_HOSTS": "from job-svc", "VC_BIG_WORKER_NUM": "from job-svc"}, variables(pod))

	pod.UID = "made"
	job = then(see(t, job.Job, admitted("ps", 1, "big-worker", 2), of(podBuilder{pod})), job)
	if again := see(t, job.Job, admitted("ps", 1, "big-worker", 2), of(podBuilder{pod})); len(again.First) != 0 {
		t.Errorf("made again: %q", writes(again))
	}
	if quiet := see(t, newJob().with("ps", 1).plugin("svc", "--disable-network-policy").Job, admitted("ps", 1), nil); len(quiet.First) != 2 {
		t.Errorf("without a NetworkPolicy: %q", writes(quiet))
	}
}

// Hosts follow a change of replicas, which elastic trainings look for; a job that nobody has changed costs no write.
func TestPluginSvcKeepsHostsAsTheTasksAre(t *testing.T) {
	job := newJob().with("worker", 2).plugin("svc").is(volcano.Running)
	job.Generation = 1
	two := of(pod("job-worker-0").running(), pod("job-worker-1").running())
	if got := see(t, job.Job, admitted("worker", 2), two); len(writes(got)) != 0 {
		t.Fatalf("of a job that nobody has changed: %q", writes(got))
	}
	for _, count := range []int32{3, 1} {
		job.Generation++
		job.Spec.Tasks[0].Replicas = count
		got := see(t, job.Job, admitted("worker", int(count)), two)
		if len(writes(got)) == 0 || writes(got)[0] != "apply v1.ConfigMap job-svc" {
			t.Fatalf("with %d replicas: %q", count, writes(got))
		}
		hosts := got.First[0].Object().(*corev1.ConfigMap).Data
		if n := len(strings.Fields(hosts["worker.host"])); n != int(count) || hosts["VC_WORKER_NUM"] != strconv.Itoa(n) {
			t.Errorf("with %d replicas: %q", count, hosts)
		}
		job = then(got, job)
		if again := see(t, job.Job, admitted("worker", int(count)), two); slices.Contains(writes(again), "apply v1.ConfigMap job-svc") {
			t.Errorf("written again: %q", writes(again))
		}
	}
}

// TestHostsAreWrittenAgainOnlyIfTheyWereRefused: whom a quota keeps from more pods has the hosts of his size all the same, and is told of
// the pods; only hosts that could not be written are written again.
func TestHostsAreWrittenAgainOnlyIfTheyWereRefused(t *testing.T) {
	for refused, again := range map[string]bool{"pods": false, "configmaps": true} {
		t.Run(refused, func(t *testing.T) {
			job := newJob().with("worker", 1).plugin("svc").is(volcano.Running)
			job.Generation, job.Spec.Tasks[0].Replicas = 2, 2
			job.Status.ControlledResources = map[string]string{pluginKey("svc"): "svc"}
			one := of(pod("job-worker-0").running())
			refusal := func(o client.Object) error {
				resource := map[bool]string{true: "pods", false: "configmaps"}[isPod(o)]
				if resource != refused {
					return nil
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, o.GetName(), errors.New("exceeded quota"))
			}
			now, events := carriedOut(t, see(t, job.Job, admitted("worker", 2), one), job.Job, refusal)
			if got := slices.Contains(writes(see(t, now, admitted("worker", 2), one)), "apply v1.ConfigMap job-svc"); got != again {
				t.Errorf("the hosts are written again: %v, want %v", got, again)
			}
			want := map[string]string{"pods": jobs.FailedCreate, "configmaps": pluginFailedReason}[refused]
			same(t, "events", []string{want}, events)
		})
	}
}

func TestATaskWithAHostNameIsOneHost(t *testing.T) {
	job := newJob().with("worker", 2, func(task *volcano.TaskSpec) { task.Template.Spec.Hostname = "gate" }).plugin("svc")
	hosts := see(t, job.Job, admitted("worker", 2), nil).First[0].Object().(*corev1.ConfigMap).Data
	if hosts["VC_WORKER_HOSTS"] != "gate.job" || hosts["VC_WORKER_NUM"] != "1" {
		t.Errorf("hosts %q", hosts)
	}
}

func TestPluginSshMakesUpAKeyOnlyWhenTheSecretIsMade(t *testing.T) {
	job := newJob().with("worker", 1).plugin("ssh")
	got := see(t, job.Job, admitted("worker", 1), nil)
	planned := got.First[0].Object().(*corev1.Secret)
	if planned.Name != "job-ssh" || planned.Data[privateKeyFile] != nil {
		t.Errorf("the plan of Secret %s has a key", planned.Name)
	}
	for range 2 {
		secret := planned.DeepCopy()
		if err := makeKeys(client.Object(secret)); err != nil {
			t.Fatal(err)
		}
		kind, text, _ := strings.Cut(strings.TrimSpace(string(secret.Data[publicKeyFile])), " ")
		wire, err := base64.StdEncoding.DecodeString(text)
		if kind != "ssh-rsa" || err != nil || len(wire) < keyBits/8 || string(wire[4:11]) != "ssh-rsa" {
			t.Errorf("public key %q: %v", secret.Data[publicKeyFile], err)
		}
		if !strings.HasPrefix(string(secret.Data[privateKeyFile]), "-----BEGIN RSA PRIVATE KEY-----") {
			t.Error("no private key")
		}
	}
	pod := made(t, got, "job-worker-0")
	if m := pod.Spec.Containers[0].VolumeMounts; len(m) != 1 || m[0].MountPath != "/root/.ssh" {
		t.Errorf("mounts %v", m)
	}
	if config := string(planned.Data[sshConfigFile]); !strings.Contains(config, "Host job-worker-0\n  HostName job-worker-0.job\n") {
		t.Errorf("config %q", config)
	}
}

// Who is not root must be able to read the keys, and root's must be root's alone.
func TestPluginSshGivesTheKeysToWhomThePodsRunAs(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "/root/.ssh 600", "--no-root": "/etc/volcano/.ssh 644", "--ssh-key-file-path=/home/mpi/.ssh": "/home/mpi/.ssh 644", "--ssh-key-file-path=/root/keys": "/root/keys 600",
	} {
		job := newJob().with("worker", 1).plugin("ssh", strings.Fields(arguments)...)
		spec := made(t, see(t, job.Job, admitted("worker", 1), nil), "job-worker-0").Spec
		modes := map[int32]bool{*spec.Volumes[0].Secret.DefaultMode: true}
		for _, item := range spec.Volumes[0].Secret.Items {
			if item.Mode != nil {
				modes[*item.Mode] = true
			}
		}
		got := fmt.Sprintf("%s %o", spec.Containers[0].VolumeMounts[0].MountPath, slices.Collect(maps.Keys(modes)))
		if got != strings.Replace(want, " ", " [", 1)+"]" {
			t.Errorf("%q: keys are in %s, want %s", arguments, got, want)
		}
	}
}

func TestPluginPytorchRanksWorkersAfterTheMaster(t *testing.T) {
	job := newJob().with("main", 1).with("worker", 2).plugin("pytorch", "--master=main", "--port", "3333")
	got := see(t, job.Job, admitted("main", 1, "worker", 2), nil)
	v := variables(made(t, got, "job-worker-1"))
	for name, want := range map[string]string{"MASTER_ADDR": "job-main-0.job", "MASTER_PORT": "3333", "WORLD_SIZE": "3", "RANK": "2", "VC_MAIN_HOSTS": "from job-svc"} {
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
	if v := variables(made(t, see(t, alone.Job, admitted("worker", 1), nil), "job-worker-0")); v["MASTER_ADDR"] != "" || v["RANK"] != "" {
		t.Errorf("without a master a worker is told %v", v)
	}
}

// TestPluginPytorchHasWorkersAwaitTheMaster: those of workers alone, where it is asked for, in a container that asks for no more than the pod.
func TestPluginPytorchHasWorkersAwaitTheMaster(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 1, func(task *volcano.TaskSpec) {
		main := &task.Template.Spec.Containers[0].Resources
		main.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}
		main.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	})
	all := admitted("master", 1, "worker", 1)
	for _, off := range [][]string{nil, {"--wait-master-enabled=false"}, {"--wait-master-timeout=5"}} {
		if pod := made(t, see(t, job.plugin("pytorch", off...).Job, all, nil), "job-worker-0"); len(pod.Spec.InitContainers) > 0 {
			t.Errorf("with %v a worker awaits the master", off)
		}
	}
	got := see(t, job.plugin("pytorch", "--wait-master-enabled", "--wait-master-timeout=7", "--wait-master-image=example.com/nc:1").Job, all, nil)
	if first := made(t, got, "job-master-0").Spec.InitContainers; len(first) > 0 {
		t.Error("the master awaits itself")
	}
	first := made(t, got, "job-worker-0").Spec.InitContainers
	if len(first) != 1 || first[0].Name != "wait-for-master" || first[0].Image != "example.com/nc:1" {
		t.Fatalf("first there are %+v", first)
	}
	same(t, "resources", corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}, first[0].Resources)
	v := map[string]string{}
	for _, e := range first[0].Env {
		v[e.Name] = e.Value
	}
	if v["MASTER_ADDR"] != "job-master-0.job" || v["MASTER_PORT"] != "23456" {
		t.Errorf("it is told %v", v)
	}
	for _, wrong := range []string{"--wait-master-timeout=0", "--wait-master-timeout=$(id)", "--wait-master-enabled=perhaps"} {
		if d := describe(job.plugin("pytorch", wrong).Job, jobs.Facts{}); d.Mistake == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// TestAWorkerAwaitsTheMasterForAWhile: the command ends once the master listens, and fails if it does not in time.
func TestAWorkerAwaitsTheMasterForAWhile(t *testing.T) {
	for name, test := range map[string]struct {
		listensAt int // look
		says      string
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
			command.Env = []string{"PATH=" + tools + ":" + os.Getenv("PATH"), "MASTER_ADDR=m.job", "MASTER_PORT=23", "LOOKS=" + looks, "LISTENS_AT=" + strconv.Itoa(test.listensAt)}
			var said strings.Builder
			command.Stderr = &said
			if err := command.Run(); (err != nil) != (test.says != "") || said.String() != test.says {
				t.Errorf("it ends with %v and says %q, want %q", err, said.String(), test.says)
			}
			done, err := os.ReadFile(looks)
			if n := strings.Count(string(done), "\n"); err != nil || n != test.looks {
				t.Errorf("it has looked %d times, want %d (%v)", n, test.looks, err)
			}
		})
	}
}

// Whoever tidies up may take away what the pods of a job need while none of them runs: it is made again before the next ones.
func TestAJobThatBeginsAnewMakesWhatItsPodsNeed(t *testing.T) {
	job := newJob().with("worker", 1).plugin("svc", "--disable-network-policy").plugin("ssh").is(volcano.Running)
	job.Spec.Volumes = []volcano.VolumeSpec{{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}}}
	admission, running := admitted("worker", 1), pod("job-worker-0").running()
	job = then(see(t, job.Job, admission, of(running)), job)
	same(t, "a pod that is evicted", []string{"create job-worker-0"}, writes(see(t, job.Job, admission, nil)))

	job = then(see(t, job.Job, admission, of(running, command("again", bus.RestartJobAction))), job)
	job = then(see(t, job.Job, admission, of(running)), job) // it is still to go
	job = then(see(t, job.Job, admission, nil), job)
	got := see(t, job.Job, admission, nil)
	same(t, "after a restart", []string{"create v1.PersistentVolumeClaim job-volume-0", "create v1.ConfigMap job-svc", "create v1.Service job", "create v1.Secret job-ssh",
		"create job-worker-0"}, writes(got))

	next := podBuilder{made(t, got, "job-worker-0")}
	next.UID = "next"
	job = then(see(t, then(got, job).Job, admission, of(next)), job)
	same(t, "once that pod is there, and evicted", []string{"create job-worker-0"}, writes(see(t, job.Job, admission, nil)))
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
	same(t, "cluster", map[string][]string{"ps": {"job-ps-0.job:2222"}, "worker": {"job-worker-0.job:2222", "job-worker-1.job:2222"}}, config.Cluster)
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
	if c := made(t, see(t, job.Job, admitted("head", 1, "worker", 1), nil), "job-worker-0").Spec.Containers[0]; c.Command[0] != "mine" {
		t.Errorf("command %q", c.Command)
	}
}

// People reach the dashboard, and submit to the head, by a Service of its own: that of svc is headless and for all pods.
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
			if pod := made(t, got, "job-boss-0"); service.Spec.ClusterIP != "" || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
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

func TestAVariableOfTheAuthorsIsNotOverwritten(t *testing.T) {
	job := newJob().with("master", 1, func(task *volcano.TaskSpec) {
		task.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RANK", Value: "mine"}}
	}).plugin("pytorch")
	if got := variables(made(t, see(t, job.Job, admitted("master", 1), nil), "job-master-0"))["RANK"]; got != "mine" {
		t.Errorf("RANK %q", got)
	}
}

func TestVolumesAreClaimedAndMounted(t *testing.T) {
	job := newJob().with("worker", 1)
	job.Spec.Volumes = []volcano.VolumeSpec{{MountPath: "/data", VolumeClaimName: "data"}, {MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}}}
	got := see(t, job.Job, admitted("worker", 1), nil)
	same(t, "writes", []string{"create v1.PersistentVolumeClaim job-volume-1", "create job-worker-0"}, writes(got))
	var mounts []string
	pod := made(t, got, "job-worker-0")
	for i, m := range pod.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, m.MountPath+" "+pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName)
	}
	same(t, "mounts", []string{"/data data", "/scratch job-volume-1"}, mounts)
	if d := describe(job.Job, jobs.Facts{}); d.Mistake != nil {
		t.Error(d.Mistake.Message)
	}
}
