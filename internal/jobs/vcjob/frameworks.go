package vcjob

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// pytorch gives the pods of two tasks the variables of torch.distributed, and the pods of other tasks the master's
// address. It does nothing without the master's task.
func pytorch(arguments map[string]string) effect {
	master, worker, port := arguments["master"], arguments["worker"], arguments["port"]
	ports := func(job *volcano.Job, _ string) []corev1.ContainerPort {
		if taskReplicas(job, master) == 0 {
			return nil
		}
		return listensOn("pytorchjob-port", port)
	}
	return effect{ports: ports, change: func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
		masters := taskReplicas(job, master)
		if masters == 0 {
			return
		}
		rank := map[string]int32{worker: masters + r.Index}
		rank[master] = r.Index
		if r.Group == worker && worker != master && isTrue(arguments["wait-master-enabled"]) {
			spec.InitContainers = append(spec.InitContainers,
				awaitMaster(spec, arguments["wait-master-image"], arguments["wait-master-timeout"]))
		}
		for c := range podspec.Containers(spec) {
			setEnv(c, "MASTER_ADDR", hostOf(job, master, 0))
			setEnv(c, "MASTER_PORT", port)
			setEnv(c, "WORLD_SIZE", strconv.Itoa(int(masters+taskReplicas(job, worker))))
			if rank, takesPart := rank[r.Group]; takesPart {
				setEnv(c, "RANK", strconv.Itoa(int(rank)))
			}
		}
	}}
}

// awaitMaster returns an init container that waits until the master listens, and fails after the given number of
// seconds. It requests no more than the pod does anyway and needs no privileges, so it is admitted wherever the pod is.
func awaitMaster(spec *corev1.PodSpec, image, seconds string) corev1.Container {
	out := corev1.Container{
		Name: "wait-for-master", Image: image,
		Command: []string{"sh", "-c", `end=$(($(date +%s) + ` + seconds + `))
until nc -z -w 2 "$MASTER_ADDR" "$MASTER_PORT"; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "nobody listens at $MASTER_ADDR:$MASTER_PORT after ` + seconds + ` s" >&2
    exit 1
  fi
  sleep 1
done`},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65534), AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities:           &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:         &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if len(spec.Containers) > 0 {
		out.Resources = podspec.ProcessorAndMemory(spec.Containers[0].Resources)
	}
	return out
}

// tensorflow gives the pods of its tasks the cluster in TF_CONFIG. A pod that is alone gets none, as
// some of TensorFlow's strategies reject a cluster without a chief.
func tensorflow(arguments map[string]string) effect {
	roles := []string{"ps", "worker", "chief", "evaluator"}
	roleOf := func(job *volcano.Job, task string) int {
		if totalOf(job) == 1 {
			return -1
		}
		return slices.IndexFunc(roles, func(role string) bool { return arguments[role] == task })
	}
	ports := func(job *volcano.Job, task string) []corev1.ContainerPort {
		if roleOf(job, task) < 0 {
			return nil
		}
		return listensOn("tfjob-port", arguments["port"])
	}
	lists := func(*volcano.Job) []hostList {
		return []hostList{{variable: "TF_CONFIG", tasks: []string{arguments["ps"], arguments["worker"], arguments["chief"]},
			perHost: len(`"":,` + arguments["port"]),
			others:  len(`{"cluster":{"chief":[],"ps":[],"worker":[]},"task":{"index":2147483647,"type":"evaluator"}}`)}}
	}
	var cluster json.RawMessage // the same for all pods
	return effect{ports: ports, lists: lists, change: func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
		at := roleOf(job, r.Group)
		if at < 0 {
			return
		}
		if cluster == nil {
			hosts := map[string][]string{}
			for _, role := range roles[:3] { // an evaluator is not part of the cluster
				for _, host := range hostsOf(job, arguments[role]) {
					hosts[role] = append(hosts[role], host+":"+arguments["port"])
				}
			}
			cluster = encoded(hosts)
		}
		config := string(encoded(map[string]any{"cluster": cluster,
			"task": map[string]any{"type": roles[at], "index": r.Index}}))
		for c := range podspec.Containers(spec) {
			setEnv(c, "TF_CONFIG", config)
		}
	}}
}

// encoded returns a part of TF_CONFIG as JSON.
func encoded(part any) json.RawMessage {
	text, err := json.Marshal(part)
	if err != nil {
		panic("encoding TF_CONFIG: " + err.Error()) // plain data
	}
	return text
}

// mpi gives the pods of the master's task the hosts of the workers.
func mpi(arguments map[string]string) effect {
	master, worker := arguments["master"], arguments["worker"]
	ports := func(_ *volcano.Job, task string) []corev1.ContainerPort {
		if task != master && task != worker {
			return nil
		}
		return listensOn("mpijob-port", arguments["port"])
	}
	lists := func(*volcano.Job) []hostList {
		return []hostList{{variable: "MPI_HOST", tasks: []string{worker}, perHost: len(",")}}
	}
	var hosts string // the same for all masters
	return effect{ports: ports, lists: lists, change: func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
		if r.Group == master {
			if hosts == "" {
				hosts = strings.Join(hostsOf(job, worker), ",")
			}
			for c := range podspec.Containers(spec) {
				setEnv(c, "MPI_HOST", hosts)
			}
		}
	}}
}

// ray makes the containers of head and workers start Ray, unless they have a command, and gives the
// head a Service, by which users reach the dashboard and submit jobs.
func ray(arguments map[string]string) effect {
	a := arguments
	objects := func(v *view) []write.Write {
		return []write.Write{createOrWarn(headService(v, a))}
	}
	ports := func(_ *volcano.Job, task string) (out []corev1.ContainerPort) {
		if task == a["head"] {
			for _, port := range headPorts {
				out = append(out, listensOn(port.name, a[port.argument])...)
			}
		}
		return out
	}
	change := func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
		switch r.Group {
		case a["head"]:
			rayContainer(spec, a["headContainer"], fmt.Sprintf("ray start --head --block --dashboard-host=0.0.0.0"+
				" --port=%s --dashboard-port=%s --ray-client-server-port=%s", a["port"], a["dashboardPort"], a["clientPort"]))
		case a["worker"]:
			rayContainer(spec, a["workerContainer"],
				fmt.Sprintf("ray start --block --address=%s:%s", hostOf(job, a["head"], 0), a["port"]))
		}
	}
	return effect{objects: objects, ports: ports, change: change}
}

// headPorts are the ports of the Ray head, and the arguments that set them.
var headPorts = []struct{ name, argument string }{{"gcs", "port"}, {"dashboard", "dashboardPort"},
	{"client-server", "clientPort"}}

func headServiceName(job *volcano.Job) string { return job.Name + "-head-svc" }

// headService returns the Service of the Ray head.
func headService(v *view, arguments map[string]string) *corev1.Service {
	selector := podsOf(v.job)
	selector[volcano.TaskSpecKey] = arguments["head"]
	service := &corev1.Service{ObjectMeta: v.owned(headServiceName(v.job)), Spec: corev1.ServiceSpec{Selector: selector}}
	for _, port := range headPorts {
		number, err := strconv.ParseInt(arguments[port.argument], 10, 32)
		if err != nil {
			continue // such a job is not queued
		}
		// The number is used, as a container may list the port under another name.
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: port.name, Port: int32(number), TargetPort: intstr.FromInt32(int32(number)), Protocol: corev1.ProtocolTCP})
	}
	return service
}

// rayContainer makes the named container, or else the first, run the command.
func rayContainer(spec *corev1.PodSpec, name, command string) {
	at := max(0, slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == name }))
	if at < len(spec.Containers) && len(spec.Containers[at].Command) == 0 && len(spec.Containers[at].Args) == 0 {
		spec.Containers[at].Command = []string{"sh", "-c", command}
	}
}

// hcclRankKey is the annotation by which the device plugin of Ascend NPUs knows the rank of a pod.
const hcclRankKey = "hccl/rankIndex"

// hcclrank tells the rank of a pod to the device plugin of its NPUs: that of its containers if they have one, else
// workers are counted after the masters.
func hcclrank(arguments map[string]string) effect {
	master, worker := arguments["master"], arguments["worker"]
	return effect{annotate: func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) map[string]string {
		for container := range pointers.To(spec.Containers) {
			for _, v := range container.Env {
				if v.Name == "RANK" && v.Value != "" {
					return map[string]string{hcclRankKey: v.Value}
				}
			}
		}
		switch r.Group {
		case master:
			return map[string]string{hcclRankKey: strconv.Itoa(int(r.Index))}
		case worker:
			return map[string]string{hcclRankKey: strconv.Itoa(int(taskReplicas(job, master) + r.Index))}
		}
		return nil
	}}
}

// listensOn returns the port, as a list; none if it is not a number.
func listensOn(name, port string) []corev1.ContainerPort {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return nil // such a job is not queued
	}
	return []corev1.ContainerPort{{Name: name, ContainerPort: int32(number), Protocol: corev1.ProtocolTCP}}
}

// openPorts adds the ports on which a task's pods listen to each container, except init containers, that lacks them.
// On the network of its node a pod may list a port once, as it takes it there.
func (e effect) openPorts(job *volcano.Job, task string, spec *corev1.PodSpec) {
	if e.ports == nil {
		return
	}
	for _, port := range e.ports(job, task) {
		lists := func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports,
				func(p corev1.ContainerPort) bool { return p.Name == port.Name || p.ContainerPort == port.ContainerPort })
		}
		for c := range pointers.To(spec.Containers) {
			if !lists(*c) && !(spec.HostNetwork && slices.ContainsFunc(spec.Containers, lists)) {
				c.Ports = append(c.Ports, port)
			}
		}
	}
}
