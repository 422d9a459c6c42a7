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

// rendezvous does what torch.distributed does at its start: rank 0 listens on the master's address, the others connect
// to it, send their variables and wait for an answer. Rank 0 answers when all are connected, and prints their
// variables.
const rendezvous = `
import os, socket, time
me = " ".join(name + "=" + os.environ[name] for name in ["RANK", "NODE_RANK", "NNODES", "WORLD_SIZE"])
nodes = int(os.environ["NNODES"])
if os.environ["RANK"] == "0":
    server, joined = socket.create_server(("", int(os.environ["MASTER_PORT"]))), [me]
    peers = []
    while len(joined) < nodes:
        peer, _ = server.accept()
        peers.append(peer)
        joined.append(peer.makefile().readline().strip())
    print("\n".join(sorted(joined)), flush=True)
    for peer in peers:
        peer.sendall(b"go\n")
        peer.recv(1)
else:
    while True:
        try:
            master = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 5)
            break
        except OSError:
            time.sleep(0.1)
    master.settimeout(None)
    master.sendall((me + "\n").encode())
    master.makefile().readline()
`

// TestTrainingWorkersConnect: the pods of a PyTorch training, which run as processes of this machine, have their ranks
// and the address of rank 0 in the variables of PyTorch, and connect by these. The job succeeds, and its VCJob is
// completed.
func TestTrainingWorkersConnect(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the training is written in Python, and there is no python3 in the PATH")
	}
	w := newWorld(t)
	w.Queue("q", kueue.ResourceFlavorSpec{},
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")})
	w.job(fmt.Sprintf(`
apiVersion: lattice.dev/v1alpha1
kind: LatticeJob
metadata: {name: train}
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
`, python, rendezvous))
	w.UntilPhase("train", lattice.Succeeded)
	vcjob := w.VCJob("train")
	if vcjob.Status.State.Phase != volcano.Completed || vcjob.Spec.MinAvailable != 3 {
		t.Errorf("VCJob has phase %s and minAvailable %d, want Completed and 3", vcjob.Status.State.Phase,
			vcjob.Spec.MinAvailable)
	}
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	log, err := clients.CoreV1().Pods(w.Namespace).GetLogs("train-master-0",
		&corev1.PodLogOptions{Container: "main"}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"RANK=0 NODE_RANK=0 NNODES=3 WORLD_SIZE=3", "RANK=1 NODE_RANK=1 NNODES=3 WORLD_SIZE=3",
		"RANK=2 NODE_RANK=2 NNODES=3 WORLD_SIZE=3"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(log)), "\n")); diff != "" {
		t.Errorf("workers that connected (-want +got):\n%s", diff)
	}
}
