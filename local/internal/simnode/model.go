package simnode

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/restartallcontainers"
)

// Labels of a simulated machine that are not Kubernetes' own. NVIDIA's feature discovery sets the nvidia.com labels on
// a real machine.
const (
	// LabelSimulated marks a Node whose pods are driven here. It is also the key of its taint.
	LabelSimulated = "muster.dev/simulated"
	// LabelRack names the rack, of nodesPerRack machines.
	LabelRack = "muster.dev/rack"
	// LabelBlock names the block, of racksPerBlock racks.
	LabelBlock = "muster.dev/block"

	labelGPUProduct = "nvidia.com/gpu.product"
	labelGPUCount   = "nvidia.com/gpu.count"
	labelGPUMemory  = "nvidia.com/gpu.memory"
	labelGPUPresent = "nvidia.com/gpu.present"

	resourceGPU corev1.ResourceName = "nvidia.com/gpu"
)

// The layout of the data centre: nodes are put into racks, racks into blocks, and blocks into zones, in the order of
// their numbers; only the last of each may be partly filled.
const (
	nodesPerRack  = 16
	racksPerBlock = 16
	blocksPerZone = 8
)

// namePrefix, followed by five digits, is the name of a Node, so that names sort in the order of the racks.
const namePrefix = "sim-"

// maxNodes is the limit that names and addresses allow.
const maxNodes = 100_000

// firstNodeAddress starts the range of the machines' addresses: the one reserved for benchmarks (RFC 2544), so that
// they collide with no real address.
var firstNodeAddress = netip.MustParseAddr("198.18.0.1")

// gpuMemoryMiB is the memory of one GPU, in MiB, as NVIDIA's feature discovery reports it.
var gpuMemoryMiB = map[string]int{
	"NVIDIA-B200":             183359,
	"NVIDIA-GB200":            189471,
	"NVIDIA-H200":             143771,
	"NVIDIA-H100-80GB-HBM3":   81559,
	"NVIDIA-H100-PCIe":        81559,
	"NVIDIA-A100-SXM4-80GB":   81920,
	"NVIDIA-A100-SXM4-40GB":   40960,
	"NVIDIA-A100-PCIE-40GB":   40960,
	"NVIDIA-L40S":             46068,
	"NVIDIA-L4":               23034,
	"NVIDIA-A10":              23028,
	"NVIDIA-A10G":             23028,
	"Tesla-V100-SXM2-32GB":    32768,
	"Tesla-V100-SXM2-16GB":    16384,
	"Tesla-T4":                15360,
	"NVIDIA-GeForce-RTX-4090": 24564,
}

// model is a kind of machine, of which the data centre has many.
type model struct {
	instanceType string
	gpuLabels    map[string]string
	capacity     corev1.ResourceList
}

// newModel validates the configuration and returns the machine that it describes.
func newModel(c Config) (model, error) {
	if c.Nodes < 0 || c.Nodes > maxNodes {
		return model{}, fmt.Errorf("%d simulated nodes asked for: give a number from 0 to %d", c.Nodes, maxNodes)
	}
	if c.GPUs < 0 {
		return model{}, fmt.Errorf("%d GPUs per simulated node asked for: give 0 or more", c.GPUs)
	}
	// The size of a DGX H100, and of the clouds' machines like it.
	m := model{
		instanceType: "sim-cpu",
		capacity: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("192"),
			corev1.ResourceMemory:           resource.MustParse("2Ti"),
			corev1.ResourceEphemeralStorage: resource.MustParse("28Ti"),
			corev1.ResourcePods:             resource.MustParse("110"),
		},
	}
	if c.GPUs == 0 {
		return m, nil
	}
	if c.GPUProduct == "" {
		return model{}, errors.New("simulated nodes have GPUs but no GPU product: name one, such as NVIDIA-H100-80GB-HBM3")
	}
	m.instanceType = fmt.Sprintf("sim-%dx-%s", c.GPUs, strings.ToLower(c.GPUProduct))
	// The instance type is the longest label made of the product, so a product that fits there fits everywhere.
	if problems := validation.IsValidLabelValue(m.instanceType); len(problems) > 0 {
		return model{}, fmt.Errorf("GPU product %q cannot be a node label, which is letters, digits, '-', '_' and '.', 63 at most; name one such as NVIDIA-H100-80GB-HBM3",
			c.GPUProduct)
	}
	m.capacity[resourceGPU] = *resource.NewQuantity(int64(c.GPUs), resource.DecimalSI)
	m.gpuLabels = map[string]string{
		labelGPUPresent: "true",
		labelGPUProduct: c.GPUProduct,
		labelGPUCount:   strconv.Itoa(c.GPUs),
	}
	if memory, known := gpuMemoryMiB[c.GPUProduct]; known {
		m.gpuLabels[labelGPUMemory] = strconv.Itoa(memory)
	} else {
		c.Logf("GPU product %s is not in the table of GPU memory: simulated nodes go without the label %s",
			c.GPUProduct, labelGPUMemory)
	}
	return m, nil
}

// node returns machine number index as its kubelet would register it at now. All of its capacity is allocatable, so
// that sums over nodes are round numbers.
func (m model) node(index int, now time.Time) *corev1.Node {
	name := nodeName(index)
	rack := index / nodesPerRack
	block := rack / racksPerBlock
	labels := map[string]string{
		corev1.LabelHostname:           name,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         "amd64",
		corev1.LabelInstanceTypeStable: m.instanceType,
		corev1.LabelTopologyZone:       fmt.Sprintf("sim-zone-%d", block/blocksPerZone+1),
		LabelSimulated:                 "true",
		LabelRack:                      fmt.Sprintf("rack-%04d", rack),
		LabelBlock:                     fmt.Sprintf("block-%03d", block),
		// Without these the node lifecycle controller would add them, with another write for each node.
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
	}
	for key, value := range m.gpuLabels {
		labels[key] = value
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.NodeSpec{
			ProviderID: "simulated://" + name,
			Taints:     []corev1.Taint{simulatedTaint},
		},
		Status: corev1.NodeStatus{
			Capacity:    m.capacity,
			Allocatable: m.capacity,
			Conditions:  healthy(now),
			// Not as InternalIP: with one, `kubectl logs` would hang while the API server tries to reach a kubelet.
			// Without one it fails at once.
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeExternalIP, Address: nodeAddress(index)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64",
				OSImage: "simulated", KernelVersion: "simulated",
				ContainerRuntimeVersion: "simulated://1", KubeletVersion: "v1.37.1",
			},
			DeclaredFeatures: declaredFeatures,
		},
	}
}

// declaredFeatures are the features of a kubelet that kube-scheduler requires for pods that restart in place: without
// them these pods would wait for ever.
var declaredFeatures = []string{restartallcontainers.RestartAllContainersOnContainerExits}

// simulatedTaint keeps away pods that do not tolerate a machine that runs nothing.
var simulatedTaint = corev1.Taint{Key: LabelSimulated, Value: "true", Effect: corev1.TaintEffectNoSchedule}

func healthy(now time.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: "the node is simulated",
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
}

func nodeName(index int) string { return fmt.Sprintf("%s%05d", namePrefix, index) }

// nodeIndex returns the index in the name of a simulated node; ok is false for a name of another form.
func nodeIndex(name string) (index int, ok bool) {
	digits, ours := strings.CutPrefix(name, namePrefix)
	index, err := strconv.Atoi(digits)
	return index, ours && err == nil && index >= 0 && nodeName(index) == name
}

func nodeAddress(index int) string {
	first := firstNodeAddress.As4()
	return addressPlus(first, uint32(index)).String()
}
