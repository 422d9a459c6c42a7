package latticejob

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// meeting is what torch.distributed does at its start: rank 0 listens where all look for it, the others tell it who
// they are and wait for its word. It prints all that came, and nobody ends before.
const meeting = `
import os, socket, time
me = " ".join(name + "=" + os.environ[name] for name in ["RANK", "NODE_RANK", "NNODES", "WORLD_SIZE"])
nodes = int(os.environ["NNODES"])
if os.environ["RANK"] == "0":
    there, came = socket.create_server(("", int(os.environ["MASTER_PORT"]))), [me]
    others = []
    while len(came) < nodes:
        other, _ = there.accept()
        others.append(other)
        came.append(other.makefile().readline().strip())
    print("\n".join(sorted(came)), flush=True)
    for other in others:
        other.sendall(b"go\n")
        other.recv(1)
else:
    while True:
        try:
            there = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 5)
            break
        except OSError:
            time.sleep(0.1)
    there.settimeout(None)
    there.sendall((me + "\n").encode())
    there.makefile().readline()
`

// TestTrainingWorkersConnect: its pods know their ranks and find the first by the variables of PyTorch, as processes of
// this machine, from an image that is root's. The job is complete with its coordinator.
func TestTrainingWorkersConnect(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the training is written in Python, and there is no python3 in the PATH")
	}
	w := newWorld(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")})
	w.job(fmt.Sprintf(`
apiVersion: lattice.dev/v1alpha1
kind: LatticeJob
metadata: {name: meet}
spec:
  queue: q
  training: {framework: PyTorch, nccl: {debug: INFO}}
  defaults:
    workload:
      containers:
        main:
          image: example.com/torch:1
          command: [%q, -c, %q]
          security: {runAsUser: 0}
          resources: {limits: {cpu: 100m, memory: 64Mi}}
  tasks:
    master: {}
    worker: {replicas: 2}
`, python, meeting))
	w.UntilPhase("meet", lattice.Succeeded)
	vcjob := w.VCJob("meet")
	if vcjob.Status.State.Phase != volcano.Completed || vcjob.Spec.MinAvailable != 3 {
		t.Errorf("its VCJob is %s with minAvailable %d", vcjob.Status.State.Phase, vcjob.Spec.MinAvailable)
	}
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	log, err := clients.CoreV1().Pods(w.Namespace).GetLogs("meet-master-0", &corev1.PodLogOptions{Container: "main"}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"RANK=0 NODE_RANK=0 NNODES=3 WORLD_SIZE=3", "RANK=1 NODE_RANK=1 NNODES=3 WORLD_SIZE=3", "RANK=2 NODE_RANK=2 NNODES=3 WORLD_SIZE=3"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(log)), "\n")); diff != "" {
		t.Errorf("who met (-want +got):\n%s", diff)
	}
}
