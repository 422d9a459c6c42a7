package vcjob

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// plugin adds a plugin with these arguments to the job.
func plugin(name string, arguments ...string) func(*volcano.Job) {
	return func(job *volcano.Job) {
		if job.Spec.Plugins == nil {
			job.Spec.Plugins = map[string]volcano.PluginArguments{}
		}
		job.Spec.Plugins[name] = append(volcano.PluginArguments{}, arguments...)
	}
}

// runJob creates the job, waits until it runs, and returns its pods, by name without that of the job.
func (w *world) runJob(job *volcano.Job) map[string]corev1.Pod {
	w.Helper()
	w.Create(job)
	w.untilPhase(job.Name, volcano.Running)
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace),
		client.MatchingLabels{volcano.JobNameKey: job.Name}); err != nil {
		w.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[strings.TrimPrefix(pod.Name, job.Name+"-")] = pod
	}
	return pods
}

// expectEnv fails the test unless the container of the pod has the variables. An empty value also stands for a missing
// variable.
func (w *world) expectEnv(pod corev1.Pod, want map[string]string) {
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

// getOwned reads the object of this name into o, and fails the test unless a VCJob controls it.
func (w *world) getOwned(o client.Object, name string) {
	w.Helper()
	o.SetName(name)
	o.SetNamespace(w.Namespace)
	w.Get(o)
	if !metav1.IsControlledBy(o, w.jobOf(o)) {
		w.Errorf("owners of %T %s = %v, want its VCJob as controller", o, name, o.GetOwnerReferences())
	}
}

// jobOf returns the VCJob that controls the object, an empty one if it has no controller.
func (w *world) jobOf(o client.Object) *volcano.Job {
	w.Helper()
	job := &volcano.Job{}
	if owner := metav1.GetControllerOf(o); owner != nil {
		job.Name, job.Namespace = owner.Name, w.Namespace
		w.Get(job)
	}
	return job
}

// TestPluginSvc: the pods have host names of a headless Service of the job, the hosts of all tasks in variables and in
// files of a ConfigMap, and a NetworkPolicy.
func TestPluginSvc(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.runJob(w.job("named", with("ps", 1, endless), with("big-worker", 2, endless), plugin("svc"), plugin("env")))
	var service corev1.Service
	var hosts corev1.ConfigMap
	w.getOwned(&service, "named")
	w.getOwned(&hosts, "named-svc")
	w.getOwned(&networkingv1.NetworkPolicy{}, "named")
	if service.Spec.ClusterIP != corev1.ClusterIPNone || service.Spec.Selector[volcano.JobNameKey] != "named" {
		t.Errorf("spec of the Service = %+v, want headless with the pods of job named", service.Spec)
	}
	for key, want := range map[string]string{"ps.host": "named-ps-0.named", "VC_BIG_WORKER_NUM": "2",
		"VC_BIG_WORKER_HOSTS": "named-big-worker-0.named,named-big-worker-1.named"} {
		if hosts.Data[key] != want {
			t.Errorf("%s in the ConfigMap = %q, want %q", key, hosts.Data[key], want)
		}
	}
	pod := pods["big-worker-1"]
	if pod.Spec.Hostname != "named-big-worker-1" || pod.Spec.Subdomain != "named" {
		t.Errorf("host name = %s.%s, want named-big-worker-1.named", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	mounts := pod.Spec.Containers[0].VolumeMounts
	if !slices.ContainsFunc(mounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/volcano" && m.Name == "named-svc" }) {
		t.Errorf("mounts = %+v, want volume named-svc at /etc/volcano", mounts)
	}
	w.expectEnv(pod, map[string]string{"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"})
}

// TestPluginSvcFollowsASize: when the number of replicas changes, the hosts in the ConfigMap follow, so that running
// pods find new ones, as elastic trainings require.
func TestPluginSvcFollowsASize(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	job := w.job("sized", with("worker", 1, endless), plugin("svc"))
	w.runJob(job)
	for _, count := range []int32{3, 2} {
		w.Change(job, func() { job.Spec.Tasks[0].Replicas, job.Spec.MinAvailable = count, 1 })
		harness.UntilOne(w.World, &corev1.ConfigMapList{}, "sized-svc", fmt.Sprintf("has the hosts of %d pods", count),
			func(hosts *corev1.ConfigMap) bool {
				return len(strings.Fields(hosts.Data["worker.host"])) == int(count) &&
					hosts.Data["VC_WORKER_NUM"] == strconv.Itoa(int(count))
			})
	}
}

// TestPluginSsh: the pods mount a Secret with a key pair of the job, by which they may log in to each other.
func TestPluginSsh(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pod := w.runJob(w.job("keyed", with("worker", 2, endless), plugin("ssh")))["worker-0"]
	var keys corev1.Secret
	w.getOwned(&keys, "keyed-ssh")
	if string(keys.Data["authorized_keys"]) != string(keys.Data["id_rsa.pub"]) ||
		!strings.HasPrefix(string(keys.Data["id_rsa"]), "-----BEGIN") ||
		!strings.Contains(string(keys.Data["config"]), "Host keyed-worker-1\n") {
		t.Errorf("Secret has the entries %v, want a private key, the public key as authorized, and a config with the hosts",
			slices.Sorted(maps.Keys(keys.Data)))
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "keyed-ssh" && *v.Secret.DefaultMode == 0o600 {
			return
		}
	}
	t.Errorf("volumes = %+v, want one of Secret keyed-ssh with mode 0600", pod.Spec.Volumes)
}

// TestPluginPytorch: the variables of PyTorch give the master rank 0 and the workers the following ranks, and the
// master has a container port.
func TestPluginPytorch(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.runJob(w.job("torch", with("master", 1, endless), with("worker", 2, endless),
		plugin("pytorch", "--port=3333")))
	all := map[string]string{"MASTER_ADDR": "torch-master-0.torch", "MASTER_PORT": "3333", "WORLD_SIZE": "3"}
	for pod, rank := range map[string]string{"master-0": "0", "worker-0": "1", "worker-1": "2"} {
		all["RANK"] = rank
		w.expectEnv(pods[pod], all)
	}
	if ports := pods["master-0"].Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 3333 {
		t.Errorf("ports of the master = %+v, want 3333", ports)
	}
	w.getOwned(&corev1.Service{}, "torch") // for the host name of the master
}

// TestPluginTensorflow: TF_CONFIG has the hosts of the cluster and the pod's own task.
func TestPluginTensorflow(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.runJob(w.job("flow", with("ps", 1, endless), with("worker", 2, endless), plugin("tensorflow")))
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
		if got := strings.Join(config.Cluster["worker"], " "); got != "flow-worker-0.flow:2222 flow-worker-1.flow:2222" ||
			config.Task.Type != "worker" || config.Task.Index != 1 {
			t.Errorf("TF_CONFIG = %s, want both worker hosts and the task worker 1", v.Value)
		}
		w.getOwned(&corev1.Service{}, "flow")
		return
	}
	t.Error("worker-1 has no TF_CONFIG")
}

// TestPluginMpi: the master has the hosts of the workers in MPI_HOST, the job has a key, and the workers have the SSH
// port.
func TestPluginMpi(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.runJob(w.job("mpi", with("master", 1, endless), with("worker", 2, endless), plugin("mpi")))
	w.expectEnv(pods["master-0"], map[string]string{"MPI_HOST": "mpi-worker-0.mpi,mpi-worker-1.mpi"})
	w.expectEnv(pods["worker-0"], map[string]string{"MPI_HOST": ""})
	w.getOwned(&corev1.Secret{}, "mpi-ssh")
	w.getOwned(&corev1.Service{}, "mpi")
	if ports := pods["worker-1"].Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 22 {
		t.Errorf("ports of worker-1 = %+v, want 22", ports)
	}
}

// TestPluginRay: the head starts Ray, the workers join it by its host name, and a Service of its own exposes it.
func TestPluginRay(t *testing.T) {
	w := newWorld(t)
	w.queue(10)
	pods := w.runJob(w.job("ray", with("head", 1, endless), with("worker", 1, endless), plugin("ray")))
	head, worker := pods["head-0"].Spec.Containers[0], pods["worker-0"].Spec.Containers[0]
	if !strings.Contains(strings.Join(head.Command, " "), "ray start --head") || len(head.Ports) != 3 {
		t.Errorf("head runs %q with ports %v, want ray start --head and 3 ports", head.Command, head.Ports)
	}
	if got := strings.Join(worker.Command, " "); !strings.Contains(got, "--address=ray-head-0.ray:6379") {
		t.Errorf("worker runs %q, want --address=ray-head-0.ray:6379", got)
	}
	w.getOwned(&corev1.Service{}, "ray")
	service := &corev1.Service{}
	if w.getOwned(service, "ray-head-svc"); service.Spec.ClusterIP == corev1.ClusterIPNone ||
		len(service.Spec.Ports) != 3 {
		t.Errorf("Service of the head has cluster IP %q and ports %v, want an IP and 3 ports", service.Spec.ClusterIP,
			service.Spec.Ports)
	}
}

// TestATaskScaledFromZeroIsAdmittedWhenTheOthersHaveEnded: a task that had no replicas when its job was admitted has no
// quota. The job reports this, and is Pending, as it needs three pods now and has one. The task's pods run when those
// of the other task have ended.
func TestATaskScaledFromZeroIsAdmittedWhenTheOthersHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	job := w.job("grows", with("first", 1, endless), with("later", 0, endless))
	w.Create(job)
	w.untilPhase("grows", volcano.Running)
	w.Change(job, func() { job.Spec.Tasks[1].Replicas = 2 })
	w.untilJob("grows", "reports a task without quota", func(job *volcano.Job) bool {
		return job.Status.State.Phase == volcano.Pending && job.Status.State.Reason == "TaskWithoutQuota"
	})
	w.EndReplica("grows-first-0", 0, 0)
	w.EndReplica("grows-later-0", 0, 0)
	w.EndReplica("grows-later-1", 0, 0)
	if job := w.untilPhase("grows", volcano.Completed); job.Status.Succeeded != 3 || job.Status.RetryCount != 0 {
		t.Errorf("succeeded = %d, retryCount = %d, want 3 and 0", job.Status.Succeeded, job.Status.RetryCount)
	}
}
