package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	batch "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/pointers"
)

const (
	// coordinatorPort is the port on which the first pod of the coordinator's task listens.
	coordinatorPort     = 29500
	coordinatorPortName = "master"

	// rankContainer is the init container that computes the pod's rank; rankFolder is where it writes the rank for the
	// containers of the task.
	rankContainer = "lattice-rank"
	rankVolume    = "lattice-ranks"
	rankFolder    = "/lattice-ranks"
	tmpVolume     = "lattice-tmp"
	shell         = "/bin/sh"

	// firstRank is the variable with the rank of a task's first pod.
	firstRank = "FIRST_RANK_OF_TASK"

	// A pod whose rank cannot be written must fail to start rather than run without one.
	writeRank = `rank=$((` + firstRank + ` + VC_TASK_INDEX)) && printf 'RANK=%d\nNODE_RANK=%d\n' "$rank" "$rank" > ` +
		rankFolder + `/of-this-pod`
	readRank = `set -a && . ` + rankFolder + `/of-this-pod && %sset +a && exec "$@"`
)

// training is what the tasks of a training job share.
type training struct {
	*lattice.TrainingConfig
	// coordinator is the name of the coordinator's task, and address the host name of its first pod.
	coordinator, address string
	// nodes is the total number of pods.
	nodes int32
	// offsets are the ranks of the tasks' first pods, by task name.
	offsets map[string]int32
}

// train prepares the tasks of a training job: it adds the variables by which they find each other,
// unless they set them.
func (c *compiler) train(config *lattice.TrainingConfig) error {
	t := &training{TrainingConfig: config, coordinator: cmp.Or(config.CoordinatorTask, lattice.DefaultCoordinator),
		offsets: map[string]int32{}}
	t.address = fmt.Sprintf("%s-%s-0.%s", c.job.Name, t.coordinator, c.job.Name)
	coordinator, there := c.tasks[t.coordinator]
	switch {
	case !there:
		return fmt.Errorf("training names the coordinator task '%s', which does not exist", t.coordinator)
	case replicas(&coordinator) == 0:
		return fmt.Errorf("training names the coordinator task '%s', which has no pods: the others would look for its first for ever", t.coordinator)
	}
	switch {
	case len(validation.IsDNS1123Label(c.job.Name)) > 0:
		return fmt.Errorf("the name of a job that trains must be a DNS label, by which its pods find each other, not '%s'",
			shortened(c.job.Name))
	case c.facts.StrictServiceNames && len(validation.IsDNS1035Label(c.job.Name)) > 0:
		return fmt.Errorf("the name of a job that trains must begin with a letter on this cluster, not '%s': its pods find each other by a Service of that name, and Kubernetes before 1.36 refuses other names of Services",
			shortened(c.job.Name))
	}
	for name, task := range inOrder(c.tasks) {
		if err := canTrain(name, &task); err != nil {
			return err
		}
		t.offsets[name] = t.nodes
		t.nodes += replicas(&task)
	}
	tasks := make(map[string]lattice.JobTaskSpec, len(c.tasks))
	for name, task := range c.tasks {
		tasks[name] = t.prepare(name, task)
	}
	c.tasks, c.training = tasks, t
	return nil
}

// canTrain returns why a task cannot take part. A container that its kubelet restarts would be in another round than
// the rest, and one that runs its image's command cannot be given its rank. The names of the init container and of its
// folder must be free.
func canTrain(name string, task *lattice.JobTaskSpec) error {
	if task.RestartPolicy != "" && task.RestartPolicy != lattice.RestartNever {
		return fmt.Errorf("training task '%s' must have restartPolicy Never, not %s: pods of a training are restarted together",
			name, task.RestartPolicy)
	}
	_, container := task.Workload.Containers[rankContainer]
	if _, sidecar := task.Sidecars[rankContainer]; container || sidecar {
		return fmt.Errorf("training task '%s' has a container '%s': it is that which tells ranks, give yours another name",
			name, rankContainer)
	}
	for container, spec := range inOrder(task.Workload.Containers) {
		_, file := spec.Files[rankFolder]
		_, volume := spec.Volumes[rankFolder]
		switch {
		case len(spec.Command) == 0:
			return fmt.Errorf("training task '%s' container '%s' must specify a command", name, container)
		case file || volume:
			return fmt.Errorf("training task '%s' container '%s' mounts something at %s, where its rank is written: give it another path",
				name, container, rankFolder)
		}
	}
	return nil
}

// prepare returns the task with the variables of the framework. The coordinator's task also gets the
// port, and a policy that ends the job when the task completes.
func (t *training) prepare(name string, task lattice.JobTaskSpec) lattice.JobTaskSpec {
	common := t.variables(&task)
	containers := make(map[string]lattice.ContainerSpec, len(task.Workload.Containers))
	for container, spec := range task.Workload.Containers {
		variables := maps.Clone(common)
		maps.Copy(variables, spec.Variables)
		spec.Variables = variables
		containers[container] = spec
	}
	task.Workload.Containers = containers
	task.Workload.Service = withCoordinatorPort(task.Workload.Service)
	if name == t.coordinator && task.Policies == nil {
		task.Policies = []lattice.JobPolicy{{Event: lattice.OnTaskCompleted, Action: lattice.CompleteJob}}
	}
	return task
}

// variables returns the variables for the containers of the task.
func (t *training) variables(task *lattice.JobTaskSpec) map[string]string {
	gpu, hasGPUs := gpuOf(task)
	out := map[string]string{}
	if t.Framework == lattice.Jax {
		out["JAX_COORDINATOR_ADDRESS"] = fmt.Sprintf("%s:%d", t.address, coordinatorPort)
		out["JAX_NUM_PROCESSES"] = strconv.Itoa(int(t.nodes)) // one process a pod, which has all of its GPUs
		if hasGPUs {
			out["JAX_LOCAL_DEVICE_COUNT"] = strconv.FormatInt(gpu.Count, 10)
		}
	} else {
		out["MASTER_ADDR"], out["MASTER_PORT"] = t.address, strconv.Itoa(coordinatorPort)
		out["NNODES"] = strconv.Itoa(int(t.nodes))
		out["WORLD_SIZE"] = strconv.FormatInt(int64(t.nodes)*max(gpu.Count, 1), 10)
		if hasGPUs {
			out["NPROC_PER_NODE"] = strconv.FormatInt(gpu.Count, 10)
		}
	}
	maps.Copy(out, ncclOfModel(gpu.Model))
	nccl := ptr.Deref(t.NCCL, lattice.NCCLConfig{})
	out["NCCL_DEBUG"] = cmp.Or(nccl.Debug, "WARN")
	if nccl.NetIf != "" {
		out["NCCL_SOCKET_IFNAME"] = nccl.NetIf
	}
	if nccl.IBHCA != "" {
		out["NCCL_IB_HCA"] = nccl.IBHCA
	}
	if nccl.GDR != nil {
		out["NCCL_NET_GDR_LEVEL"] = map[bool]string{true: "5", false: "0"}[*nccl.GDR]
	}
	maps.Copy(out, nccl.ExtraEnv)
	return out
}

// gpuOf returns the GPUs of the task. Errors are reported when its resources are read.
func gpuOf(task *lattice.JobTaskSpec) (gpu gpuParams, has bool) {
	for _, r := range inOrder(task.Workload.Resources) {
		if r.Type == lattice.GPUResource {
			_, err := read(r.Params, &gpu)
			return gpu, err == nil
		}
	}
	return gpu, false
}

// ncclOfModel returns the best NCCL settings for the GPU model: only rings for models without NVSwitch,
// and no InfiniBand for models whose machines have none.
func ncclOfModel(model string) map[string]string {
	model = strings.ToUpper(model)
	is := func(part string) bool { return strings.Contains(model, part) }
	switch {
	case is("H100") && is("SXM"):
		return map[string]string{"NCCL_ALGO": "Ring,Tree", "NCCL_IB_DISABLE": "0"}
	case is("H100"):
		return map[string]string{"NCCL_ALGO": "Ring", "NCCL_IB_DISABLE": "0"}
	case is("A100"):
		return map[string]string{"NCCL_ALGO": "Ring,Tree"}
	case is("L4"), is("T4"):
		return map[string]string{"NCCL_ALGO": "Ring", "NCCL_IB_DISABLE": "1"}
	}
	return nil
}

// withCoordinatorPort adds the coordinator's port, unless the task has a port with its name or number.
func withCoordinatorPort(service *lattice.ServiceSpec) *lattice.ServiceSpec {
	out := &lattice.ServiceSpec{Ports: map[string]lattice.ServicePort{}}
	maps.Copy(out.Ports, portsOf(service))
	for name, port := range out.Ports {
		if name == coordinatorPortName || port.Port == coordinatorPort {
			return out
		}
	}
	out.Ports[coordinatorPortName] = lattice.ServicePort{Port: coordinatorPort}
	return out
}

// trainingPlugins give pods host names, published before they are ready, and their index in the task.
func trainingPlugins() map[string]batch.PluginArguments {
	return map[string]batch.PluginArguments{"env": {}, "svc": {"--publish-not-ready-addresses=true"}}
}

// rank gives each pod its rank among all pods: an init container adds the number of pods of earlier
// tasks to the pod's index in its own, and the containers' commands start by reading the result.
func (t *task) rank() error {
	if t.training == nil {
		return nil
	}
	for _, name := range []string{rankVolume, tmpVolume} {
		if err := t.volumes.add(name, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}); err != nil {
			return fmt.Errorf("invalid volume config: %w", err)
		}
	}
	first := &t.pod.Containers[0]
	// It requests no more than the containers that run after it.
	asks := ResourcesOf(t.spec.Workload.Containers[first.Name].Resources)
	folder := corev1.VolumeMount{Name: rankVolume, MountPath: rankFolder}
	t.pod.InitContainers = append(t.pod.InitContainers, corev1.Container{
		Name: rankContainer, Image: first.Image, ImagePullPolicy: first.ImagePullPolicy,
		Command:   []string{shell, "-c", writeRank},
		Env:       []corev1.EnvVar{{Name: firstRank, Value: strconv.Itoa(int(t.training.offsets[t.name]))}},
		Resources: asks, SecurityContext: securityOf(identityOf(t.spec.Workload.Containers[first.Name].Security)),
		VolumeMounts: []corev1.VolumeMount{folder},
	})
	for c := range pointers.To(t.pod.Containers) {
		if _, ours := t.spec.Workload.Containers[c.Name]; !ours {
			continue // a sidecar
		}
		c.Args = slices.Concat(c.Command, c.Args)
		c.Command = []string{shell, "-c", rankReader(t.spec.Workload.Containers[c.Name].Variables), "sh"}
		c.VolumeMounts = append(c.VolumeMounts, folder)
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tmp" }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tmpVolume, MountPath: "/tmp"})
		}
	}
	return nil
}

// rankReader returns the shell prefix that sets the rank for the command, except for variables that the
// container sets itself.
func rankReader(variables map[string]string) string {
	first, then := "", ""
	for i, name := range []string{"RANK", "NODE_RANK"} {
		if _, says := variables[name]; says {
			first += fmt.Sprintf("said%d=$%s && ", i, name)
			then += fmt.Sprintf("%s=$said%d && ", name, i)
		}
	}
	return first + fmt.Sprintf(readRank, then)
}

// label labels the pods of the training.
func (t *training) label(job string, labels map[string]string) {
	labels[lattice.TrainingJobLabel], labels[lattice.MeshModeLabel] = job, lattice.NoMesh
}
