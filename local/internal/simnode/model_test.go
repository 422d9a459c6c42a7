package simnode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func quiet(string, ...any) {}

func TestAMachineIsLabelledAndSizedLikeARealOne(t *testing.T) {
	m, err := newModel(Config{Nodes: 300, GPUs: 8, GPUProduct: "NVIDIA-H100-80GB-HBM3", Logf: quiet})
	if err != nil {
		t.Fatal(err)
	}
	node := m.node(260, time.Now())
	want := map[string]string{
		"kubernetes.io/hostname":           "sim-00260",
		"kubernetes.io/os":                 "linux",
		"kubernetes.io/arch":               "amd64",
		"beta.kubernetes.io/os":            "linux",
		"beta.kubernetes.io/arch":          "amd64",
		"node.kubernetes.io/instance-type": "sim-8x-nvidia-h100-80gb-hbm3",
		"topology.kubernetes.io/zone":      "sim-zone-1",
		"nvidia.com/gpu.present":           "true",
		"nvidia.com/gpu.product":           "NVIDIA-H100-80GB-HBM3",
		"nvidia.com/gpu.count":             "8",
		"nvidia.com/gpu.memory":            "81559",
		"muster.dev/simulated":             "true",
		"muster.dev/rack":                  "rack-0016",
		"muster.dev/block":                 "block-001",
	}
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	sizes := map[corev1.ResourceName]string{"cpu": "192", "memory": "2Ti", "ephemeral-storage": "28Ti", "pods": "110",
		"nvidia.com/gpu": "8"}
	for name, want := range sizes {
		if got := node.Status.Allocatable[name]; got.String() != want {
			t.Errorf("allocatable %s = %s, want %s", name, got.String(), want)
		}
	}
	if got := node.Status.Addresses[0].Address; got != "198.18.1.5" {
		t.Errorf("address = %s, want the 261st of the range, 198.18.1.5", got)
	}
	if got := node.Status.DeclaredFeatures; !slices.Contains(got, "RestartAllContainersOnContainerExits") {
		t.Errorf("declared features = %v, want what pods that restart in place require", got)
	}
	wantTaints := []corev1.Taint{{Key: "muster.dev/simulated", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(wantTaints, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

func TestEveryKnownProductMakesValidLabels(t *testing.T) {
	for product := range gpuMemoryMiB {
		m, err := newModel(Config{Nodes: 1, GPUs: 16, GPUProduct: product, Logf: quiet})
		if err != nil {
			t.Errorf("product %s: %v", product, err)
			continue
		}
		for key, value := range m.node(maxNodes-1, time.Now()).Labels {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%s: label %s=%s: %s", product, key, value, problems)
			}
		}
	}
}

func TestInvalidConfigurationIsRejected(t *testing.T) {
	tests := map[string]struct {
		config Config
		want   string
	}{
		"a negative number of nodes": {Config{Nodes: -1}, "-1 simulated nodes asked for: give a number from 0 to 100000"},
		"more nodes than names": {Config{Nodes: 100_001},
			"100001 simulated nodes asked for: give a number from 0 to 100000"},
		"a negative number of GPUs": {Config{GPUs: -1}, "-1 GPUs per simulated node asked for: give 0 or more"},
		"GPUs without a product": {Config{GPUs: 8},
			"simulated nodes have GPUs but no GPU product: name one, such as NVIDIA-H100-80GB-HBM3"},
		"a product that is not a label": {Config{GPUs: 8, GPUProduct: "H100 80GB"},
			`GPU product "H100 80GB" cannot be a node label`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.config.Logf = quiet
			_, err := newModel(test.config)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}

func TestUnknownProductHasNoMemoryLabelAndIsReported(t *testing.T) {
	var logged []string
	m, err := newModel(Config{Nodes: 1, GPUs: 4, GPUProduct: "Home-Made-1", Logf: func(format string, _ ...any) {
		logged = append(logged, format)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if value, given := m.node(0, time.Now()).Labels[labelGPUMemory]; given || len(logged) != 1 {
		t.Errorf("memory label = %q and %d log lines, want no label and one line", value, len(logged))
	}
}

func TestMachineWithoutGPUsHasNoGPULabels(t *testing.T) {
	m, err := newModel(Config{Nodes: 1, GPUs: 0, Logf: quiet})
	if err != nil {
		t.Fatal(err)
	}
	node := m.node(0, time.Now())
	for key := range node.Labels {
		if strings.HasPrefix(key, "nvidia.com/") {
			t.Errorf("label %s on a machine without GPUs", key)
		}
	}
	if _, has := node.Status.Capacity[resourceGPU]; has {
		t.Error("GPUs in the capacity of a machine without GPUs")
	}
}

func TestNodeIndexAcceptsOnlyGeneratedNames(t *testing.T) {
	for name, want := range map[string]bool{
		"sim-00000": true, "sim-04999": true, "sim-99999": true,
		"sim-1": false, "sim-0000a": false, "sim-000001": false, "node-00001": false, "sim--0001": false, "sim-+0001": false,
	} {
		if _, got := nodeIndex(name); got != want {
			t.Errorf("nodeIndex(%s) = %t, want %t", name, got, want)
		}
	}
}
