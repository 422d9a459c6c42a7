package compile

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/podspec"
)

// Resources that GPUs are requested as, and labels of nodes with GPUs.
const (
	VGPUNumber     corev1.ResourceName = "volcano.sh/vgpu-number"
	VGPUMemory     corev1.ResourceName = "volcano.sh/vgpu-memory"
	VGPUCores      corev1.ResourceName = "volcano.sh/vgpu-cores"
	WholeGPU       corev1.ResourceName = "nvidia.com/gpu"
	GPUMemoryLabel                     = "nvidia.com/gpu.memory"

	gpuProductLabel = "nvidia.com/gpu.product"
	// NvidiaRuntime is the RuntimeClass of containers that use GPUs.
	NvidiaRuntime = "nvidia"
	// sharedMemory is a volume that replaces a container's default shared memory of 64 MiB.
	sharedMemory, sharedMemoryPath = "dshm", "/dev/shm"
)

// gpuModels maps names of GPU models, in upper case, to values of the product label.
var gpuModels = map[string]string{
	"H100": "NVIDIA-H100-80GB-HBM3", "H100SXM": "NVIDIA-H100-80GB-HBM3", "H100PCIE": "NVIDIA-H100-PCIe",
	"A100": "NVIDIA-A100-SXM4-80GB", "A100-80G": "NVIDIA-A100-SXM4-80GB", "A100-40G": "NVIDIA-A100-SXM4-40GB",
	"A10G": "NVIDIA-A10G", "L40S": "NVIDIA-L40S", "L40": "NVIDIA-L40", "L4": "NVIDIA-L4",
	"T4": "NVIDIA-Tesla-T4", "V100": "NVIDIA-Tesla-V100-SXM2-16GB",
}

// UnsharedGPUsError says that a job asks for a part of a GPU, which no node offers. Nodes that do may come.
type UnsharedGPUsError struct{ Compute int64 }

func (u *UnsharedGPUsError) Error() string {
	return fmt.Sprintf("params.compute is %d, but no node shares its GPUs: install Volcano's vGPU device plugin, so that nodes offer %s, set latticejob.gpus to vgpu if they will, or ask for 100",
		u.Compute, VGPUCores)
}

// gpus makes the first container request the task's GPUs, and restricts the pods to nodes that have them.
func (t *task) gpus() error {
	var d *dependency
	for _, name := range t.names {
		if t.resources[name].Type != lattice.GPUResource {
			continue
		}
		if d != nil {
			return fmt.Errorf("resource '%s': the task has GPUs already, resource '%s': it can have one resource of type gpu", name, d.name)
		}
		d = t.resources[name]
	}
	if d == nil {
		return nil
	}
	if err := t.askGPUs(&d.gpu); err != nil {
		return fmt.Errorf("resource '%s': %w", d.name, err)
	}
	if ptr.Deref(d.gpu.Tolerations, true) {
		t.pod.Tolerations = append(t.pod.Tolerations,
			corev1.Toleration{Key: string(WholeGPU), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	if t.facts.NvidiaRuntime {
		t.pod.RuntimeClassName = ptr.To(NvidiaRuntime)
	}
	t.pod.SchedulerName = lattice.DefaultScheduler
	return t.shareMemory()
}

// askGPUs requests shares of GPUs where the cluster has them, or else whole GPUs.
func (t *task) askGPUs(gpu *gpuParams) error {
	first := &t.pod.Containers[0].Resources
	limits := corev1.ResourceList{}
	maps.Copy(limits, first.Limits)
	if t.facts.GPUs == SharedGPUs {
		limits[VGPUNumber] = *resource.NewQuantity(gpu.Count, resource.DecimalSI)
		if gpu.mib > 0 {
			limits[VGPUMemory] = *resource.NewQuantity(gpu.mib, resource.DecimalSI)
		}
		if gpu.Compute != nil {
			limits[VGPUCores] = *resource.NewQuantity(*gpu.Compute, resource.DecimalSI)
		}
	} else {
		if gpu.Compute != nil && *gpu.Compute < 100 {
			return &UnsharedGPUsError{Compute: *gpu.Compute}
		}
		limits[WholeGPU] = *resource.NewQuantity(gpu.Count, resource.DecimalSI)
		if gpu.mib > 0 && t.facts.GPUMemoryLabel {
			requireGPUMemory(&t.pod, gpu.mib)
		}
	}
	first.Limits = limits
	if gpu.Model != "" {
		product := gpuProduct(t.facts.GPUModels, gpu.Model)
		if len(validation.IsValidLabelValue(product)) > 0 {
			return errors.New("params.model must be the name of a model, or the value of the label " + gpuProductLabel)
		}
		t.pod.NodeSelector = map[string]string{gpuProductLabel: product}
	}
	return nil
}

// gpuProduct returns the value of the product label for a GPU model, which is the model itself if it is not known.
func gpuProduct(configured map[string]string, model string) string {
	upper := strings.ToUpper(model)
	for _, models := range []map[string]string{configured, gpuModels} {
		if product, ok := models[upper]; ok {
			return product
		}
	}
	return model
}

// requireGPUMemory restricts the pod to nodes whose GPUs have at least that much memory.
func requireGPUMemory(pod *corev1.PodSpec, mib int64) {
	podspec.Require(pod, corev1.NodeSelectorRequirement{Key: GPUMemoryLabel, Operator: corev1.NodeSelectorOpGt,
		Values: []string{strconv.FormatInt(mib-1, 10)}})
}

// shareMemory gives the GPU container the shared memory that it asks for, unless it mounts a volume there itself.
func (t *task) shareMemory() error {
	first := &t.pod.Containers[0]
	for _, m := range first.VolumeMounts {
		if m.MountPath == sharedMemoryPath {
			return nil
		}
	}
	first.VolumeMounts = append(first.VolumeMounts, corev1.VolumeMount{Name: sharedMemory, MountPath: sharedMemoryPath})
	err := t.volumes.add(sharedMemory,
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	if err != nil {
		return fmt.Errorf("invalid volume config: %w", err)
	}
	return nil
}
