package compile

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// TestTheRankIsWorkedOutAsWhoTrains: an image that is root's runs as nobody else, and a node without AppArmor takes no
// pod any container of which asks for it. More than that the container with the rank may not do.
func TestTheRankIsWorkedOutAsWhoTrains(t *testing.T) {
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "ml"}, Spec: lattice.LatticeJobSpec{
		Training: &lattice.TrainingConfig{Framework: lattice.PyTorch},
		Tasks: map[string]lattice.JobTaskSpec{
			"master": {Workload: lattice.WorkloadSpec{Containers: map[string]lattice.ContainerSpec{"main": {
				SidecarContainer: lattice.SidecarContainer{Image: "example.com/torch:1", Command: []string{"/usr/bin/python3"},
					Security: &lattice.SecurityContext{
						RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](7), ApparmorProfile: "Unconfined",
						Privileged: ptr.To(true), Capabilities: []string{"SYS_ADMIN"},
					}},
			}}}}},
	}}
	result, err := Compile(job, Facts{})
	if err != nil {
		t.Fatal(err)
	}
	want := securityOf(nil)
	want.RunAsNonRoot, want.RunAsUser, want.RunAsGroup = ptr.To(false), ptr.To[int64](0), ptr.To[int64](7)
	want.AppArmorProfile.Type = corev1.AppArmorProfileTypeUnconfined
	if diff := cmp.Diff(want, result.VCJob.Spec.Tasks[0].Template.Spec.InitContainers[0].SecurityContext); diff != "" {
		t.Errorf("%s runs as (-want +got):\n%s", rankContainer, diff)
	}
}

// TestARankThatItsVariablesSayIsKept: what a container says itself is never overwritten.
func TestARankThatItsVariablesSayIsKept(t *testing.T) {
	if _, err := os.Stat(shell); err != nil {
		t.Skip("there is no shell on this machine")
	}
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/of-this-pod", []byte("RANK=3\nNODE_RANK=3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		said map[string]string
		want string
	}{
		{nil, "3 3"},
		{map[string]string{"RANK": "a b"}, "a b 3"},
		{map[string]string{"NODE_RANK": "1", "OTHER": "x"}, "3 1"},
		{map[string]string{"RANK": "0", "NODE_RANK": "1"}, "0 1"},
	} {
		reader := strings.ReplaceAll(rankReader(test.said), rankFolder, folder)
		run := exec.Command(shell, "-c", reader, "sh", shell, "-c", "echo $RANK $NODE_RANK")
		for name, value := range test.said {
			run.Env = append(run.Env, name+"="+value)
		}
		if got, err := run.CombinedOutput(); err != nil || strings.TrimSpace(string(got)) != test.want {
			t.Errorf("with %v: %q, %v, want %q", test.said, got, err, test.want)
		}
	}
}
