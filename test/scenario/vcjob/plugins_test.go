package vcjob

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// plugin has the job have a plugin.
func plugin(name string, arguments ...string) func(*volcano.Job) {
	return func(job *volcano.Job) {
		if job.Spec.Plugins == nil {
			job.Spec.Plugins = map[string]volcano.PluginArguments{}
		}
		job.Spec.Plugins[name] = append(volcano.PluginArguments{}, arguments...)
	}
}

// running is the pods of the job once it runs, by their names without the job's.
func (w *world) running(job *volcano.Job) map[string]corev1.Pod {
	w.Helper()
	w.Create(job)
	w.untilPhase(job.Name, volcano.Running)
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace), client.MatchingLabels{volcano.JobNameKey: job.Name}); err != nil {
		w.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[strings.TrimPrefix(pod.Name, job.Name+"-")] = pod
	}
	return pods
}

// says fails the test unless the container of the pod has the variables.
func (w *world) says(pod corev1.Pod, want map[string]string) {
	w.Helper()
	got := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		got[v.Name] = v.Value
	}
	for name, value := range want {
		if got[name] != value {
			w.Errorf("%s: %s is %q, want %q", pod.Name, name, got[name], value)
		}
	}
}

func (w *world) object(o client.Object, name string) {
	w.Helper()
	o.SetName(name)
	o.SetNamespace(w.Namespace)
	w.Get(o)
	if !metav1.IsControlledBy(o, w.jobOf(o)) {
		w.Errorf("%T %s is not the job's", o, name)
	}
}

// jobOf is the VCJob that controls the object.
func (w *world) jobOf(o client.Object) *volcano.Job {
	w.Helper()
	job := &volcano.Job{}
	if owner := metav1.GetControllerOf(o); owner != nil {
		job.Name, job.Namespace = owner.Name, w.Namespace
		w.Get(job)
	}
	return job
}

// TestPluginSvc: pods have host names that a headless Service of the job answers for, know all others by files and variables,
// and nobody else reaches them.
func TestPluginSvc(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.running(w.job("named", with("ps", 1, endless), with("big-worker", 2, endless), plugin("svc"), plugin("env")))
	var service corev1.Service
	var hosts corev1.ConfigMap
	w.object(&service, "named")
	w.object(&hosts, "named-svc")
	w.object(&networkingv1.NetworkPolicy{}, "named")
	if service.Spec.ClusterIP != corev1.ClusterIPNone || service.Spec.Selector[volcano.JobNameKey] != "named" {
		t.Errorf("Service %+v", service.Spec)
	}
	for key, want := range map[string]string{"ps.host": "named-ps-0.named", "VC_BIG_WORKER_NUM": "2",
		"VC_BIG_WORKER_HOSTS": "named-big-worker-0.named,named-big-worker-1.named"} {
		if hosts.Data[key] != want {
			t.Errorf("%s is %q, want %q", key, hosts.Data[key], want)
		}
	}
	pod := pods["big-worker-1"]
	if pod.Spec.Hostname != "named-big-worker-1" || pod.Spec.Subdomain != "named" {
		t.Errorf("its host is %s.%s", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if m.MountPath == "/etc/volcano" && m.Name != "named-svc" {
			t.Errorf("its hosts are %+v", m)
		}
	}
	w.says(pod, map[string]string{"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"})
}

// TestPluginSvcFollowsASize: pods that run find those that came later, as elastic trainings want it.
func TestPluginSvcFollowsASize(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	job := w.job("sized", with("worker", 1, endless), plugin("svc"))
	w.running(job)
	for _, count := range []int32{3, 2} {
		w.Change(job, func() { job.Spec.Tasks[0].Replicas, job.Spec.MinAvailable = count, 1 })
		harness.UntilOne(w.World, &corev1.ConfigMapList{}, "sized-svc", "has the hosts of all pods", func(hosts *corev1.ConfigMap) bool {
			return len(strings.Fields(hosts.Data["worker.host"])) == int(count) && hosts.Data["VC_WORKER_NUM"] == strconv.Itoa(int(count))
		})
	}
}

// TestPluginSsh: pods log in to each other with a key of the job's own, which nobody is told.
func TestPluginSsh(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pod := w.running(w.job("keyed", with("worker", 2, endless), plugin("ssh")))["worker-0"]
	var keys corev1.Secret
	w.object(&keys, "keyed-ssh")
	if string(keys.Data["authorized_keys"]) != string(keys.Data["id_rsa.pub"]) || !strings.HasPrefix(string(keys.Data["id_rsa"]), "-----BEGIN") ||
		!strings.Contains(string(keys.Data["config"]), "Host keyed-worker-1\n") {
		t.Errorf("the Secret has %d keys", len(keys.Data))
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "keyed-ssh" && *v.Secret.DefaultMode == 0o600 {
			return
		}
	}
	t.Errorf("no volume has the keys: %+v", pod.Spec.Volumes)
}

// TestPluginPytorch: the master is rank 0, and workers come after it.
func TestPluginPytorch(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.running(w.job("torch", with("master", 1, endless), with("worker", 2, endless), plugin("pytorch", "--port=3333")))
	all := map[string]string{"MASTER_ADDR": "torch-master-0.torch", "MASTER_PORT": "3333", "WORLD_SIZE": "3"}
	for pod, rank := range map[string]string{"master-0": "0", "worker-0": "1", "worker-1": "2"} {
		all["RANK"] = rank
		w.says(pods[pod], all)
	}
	if ports := pods["master-0"].Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 3333 {
		t.Errorf("ports %+v", ports)
	}
	w.object(&corev1.Service{}, "torch") // for the name of the master
}

// TestPluginTensorflow: each pod is told the cluster, and which part it plays.
func TestPluginTensorflow(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.running(w.job("flow", with("ps", 1, endless), with("worker", 2, endless), plugin("tensorflow")))
	for _, v := range pods["worker-1"].Spec.Containers[0].Env {
		if v.Name != "TF_CONFIG" {
			continue
		}
		var config struct {
			Cluster map[string][]string
			Task    struct {
				Type  string
				Index int
			}
		}
		if err := json.Unmarshal([]byte(v.Value), &config); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(config.Cluster["worker"], " "); got != "flow-worker-0.flow:2222 flow-worker-1.flow:2222" || config.Task.Type != "worker" || config.Task.Index != 1 {
			t.Errorf("TF_CONFIG %s", v.Value)
		}
		w.object(&corev1.Service{}, "flow")
		return
	}
	t.Error("it has no TF_CONFIG")
}

// TestPluginMpi: the master knows the workers' hosts, and has a key to them.
func TestPluginMpi(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.running(w.job("mpi", with("master", 1, endless), with("worker", 2, endless), plugin("mpi")))
	w.says(pods["master-0"], map[string]string{"MPI_HOST": "mpi-worker-0.mpi,mpi-worker-1.mpi"})
	w.says(pods["worker-0"], map[string]string{"MPI_HOST": ""})
	w.object(&corev1.Secret{}, "mpi-ssh")
	w.object(&corev1.Service{}, "mpi")
	if ports := pods["worker-1"].Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 22 {
		t.Errorf("ports %+v", ports)
	}
}

// TestPluginRay: the head starts Ray, and workers join it by its name.
func TestPluginRay(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.running(w.job("ray", with("head", 1, endless), with("worker", 1, endless), plugin("ray")))
	head, worker := pods["head-0"].Spec.Containers[0], pods["worker-0"].Spec.Containers[0]
	if !strings.Contains(strings.Join(head.Command, " "), "ray start --head") || len(head.Ports) != 3 {
		t.Errorf("head runs %q with ports %v", head.Command, head.Ports)
	}
	if got := strings.Join(worker.Command, " "); !strings.Contains(got, "--address=ray-head-0.ray:6379") {
		t.Errorf("worker runs %q", got)
	}
	w.object(&corev1.Service{}, "ray")
	service := &corev1.Service{}
	if w.object(service, "ray-head-svc"); service.Spec.ClusterIP == corev1.ClusterIPNone || len(service.Spec.Ports) != 3 {
		t.Errorf("the head's Service has %s and ports %v", service.Spec.ClusterIP, service.Spec.Ports)
	}
}

// TestATaskThatComesLaterIsAdmittedWhenTheOthersHaveEnded: it had no pods when the job was admitted, and is told to wait.
func TestATaskThatComesLaterIsAdmittedWhenTheOthersHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	job := w.job("grows", with("first", 1, endless), with("later", 0, endless))
	w.Create(job)
	w.untilPhase("grows", volcano.Running)
	w.Change(job, func() { job.Spec.Tasks[1].Replicas = 2 })
	w.untilJob("grows", "says that the task waits", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Running && job.Status.State.Reason == "TaskWithoutQuota"
	})
	w.EndReplica("grows-first-0", 0, 0)
	w.EndReplica("grows-later-0", 0, 0)
	w.EndReplica("grows-later-1", 0, 0)
	if job := w.untilPhase("grows", volcano.Completed); job.Status.Succeeded != 3 || job.Status.RetryCount != 0 {
		t.Errorf("%d succeeded, %d retries", job.Status.Succeeded, job.Status.RetryCount)
	}
}
