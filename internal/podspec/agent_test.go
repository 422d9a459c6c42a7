package podspec

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

var agent = Agent{Image: "muster/operator:1", Server: "muster.example:9444", CA: "certificate"}

func trainer() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](90),
		InitContainers:                []corev1.Container{{Name: "data", Command: []string{"fetch"}}},
		Containers: []corev1.Container{
			{Name: "logs", Command: []string{"tail"}},
			{
				Name: "trainingjob", Command: []string{"python"}, Args: []string{"-u", "main.py"},
				Env: []corev1.EnvVar{{Name: "LATTICE_MAX_RESTARTS", Value: "7"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("2"),
				}},
			},
		},
	}}
}

func TestAgentWrapsTheCommandOfOneContainer(t *testing.T) {
	before := trainer()
	got, err := agent.Inject(before,
		Round{ID: "uid", Min: 2, Max: 4, Index: 3, Framework: "pytorch", Container: "trainingjob"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(trainer(), before); diff != "" {
		t.Errorf("Inject changed the given template: %s", diff)
	}
	c := got.Spec.Containers[1]
	if want := []string{"/var/run/muster/muster-agent", "run", "--", "python"}; !slices.Equal(c.Command, want) ||
		!slices.Equal(c.Args, []string{"-u", "main.py"}) {
		t.Errorf("command = %q %q, want it run by the agent", c.Command, c.Args)
	}
	if diff := cmp.Diff(before.Spec.Containers[0], got.Spec.Containers[0]); diff != "" {
		t.Errorf("Inject changed the other container: %s", diff)
	}
	installer := got.Spec.InitContainers[0]
	if installer.Image != agent.Image ||
		!slices.Equal(installer.Command, []string{"muster-agent", "install", "/var/run/muster"}) {
		t.Errorf("installer = %+v, want the agent's image and install", installer)
	}
	if _, gpu := installer.Resources.Requests["nvidia.com/gpu"]; gpu || installer.Resources.Requests.Cpu().Value() != 2 {
		t.Errorf("requests of the installer = %v, want those of the container without GPUs", installer.Resources.Requests)
	}
	value := map[string]string{}
	for _, e := range c.Env {
		value[e.Name] = e.Value
	}
	for name, want := range map[string]string{
		"MUSTER_RENDEZVOUS": "muster.example:9444", "MUSTER_RENDEZVOUS_CA": "certificate", "MUSTER_CHECKPOINT_GRACE": "90",
		"LATTICE_NNODES": "2:4", "LATTICE_RDZV_ID": "uid", "LATTICE_AUTOPATCH": "torch", "LATTICE_FRAMEWORK": "pytorch",
		"LATTICE_RDZV_CLIENT_SERVICE_HOST": "muster.example", "LATTICE_RDZV_CLIENT_SERVICE_PORT": "9444",
		"LATTICE_MAX_RESTARTS": "7", // set by the user
	} {
		if value[name] != want {
			t.Errorf("%s = %q, want %q", name, value[name], want)
		}
	}
	if diff := cmp.Diff(map[string]string{"muster.dev/rendezvous": "uid"}, got.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"muster.dev/rendezvous-size": "2:4", "muster.dev/rendezvous-index": "3"},
		got.Annotations); diff != "" {
		t.Error(diff)
	}
	if again, err := agent.Inject(got, Round{ID: "uid"}); err == nil {
		t.Errorf("Inject wrapped an agent in an agent: %v", again)
	}
}

func TestAgentInjectionErrors(t *testing.T) {
	silent := trainer()
	silent.Spec.Containers[1].Command = nil
	if _, err := agent.Inject(silent, Round{Container: "trainingjob"}); !errors.Is(err, errNoCommand) {
		t.Errorf("without a command: got error %v, want errNoCommand", err)
	}
	if _, err := agent.Inject(trainer(), Round{Container: "other"}); err == nil {
		t.Error("Inject accepted a container that does not exist")
	}
	if _, err := (Agent{}).Inject(trainer(), Round{}); !errors.Is(err, errAgentsDisabled) {
		t.Errorf("without a rendezvous: got error %v, want errAgentsDisabled", err)
	}
}

func TestAgentServerMayBeAnIPv6Address(t *testing.T) {
	server := agent
	server.Server = "[fd00::1]:9444"
	template := corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Command: []string{"x"}}}}}
	out, err := server.Inject(template, Round{ID: "id", Min: 1, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range out.Spec.Containers[0].Env {
		got[v.Name] = v.Value
	}
	if host, port := got["LATTICE_RDZV_CLIENT_SERVICE_HOST"],
		got["LATTICE_RDZV_CLIENT_SERVICE_PORT"]; host != "fd00::1" || port != "9444" {
		t.Errorf("host = %q and port = %q, want fd00::1 and 9444", host, port)
	}
}
