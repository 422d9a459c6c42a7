// Package external tests LatticeJobs whose VCJobs are run by Volcano, on the embedded control plane with the operator
// as users run it. The tests simulate Volcano: they install its CRD of Jobs after the operator has started, and set the
// phases of VCJobs. The configuration rejects changes of running LatticeJobs.
package external

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{SimNodes: 1, Operator: true, Config: `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
volcano: external
latticejob:
  immutable: deny
`})
}

// world is a namespace with helpers for LatticeJobs and their VCJobs.
type world struct{ harness.LatticeJobs }

func newWorld(t *testing.T) *world { return &world{harness.LatticeJobs{World: harness.New(t)}} }

// queue creates a ClusterQueue named after the namespace with this quota of CPUs, and the LocalQueue q.
func (w *world) queue(cpu string) {
	w.Helper()
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("1000Ti")})
}

// job creates a LatticeJob in the queue, with that many pods of one CPU each. The edits are applied to its only task.
func (w *world) job(name, queue string, pods int32, edits ...func(*lattice.JobTaskSpec)) *lattice.LatticeJob {
	w.Helper()
	oneCPU := lattice.ResourceQuantity{CPU: ptr.To(resource.MustParse("1"))}
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: lattice.LatticeJobSpec{Queue: queue}}
	task := lattice.JobTaskSpec{Replicas: ptr.To(pods), Workload: lattice.WorkloadSpec{
		Containers: map[string]lattice.ContainerSpec{"main": {SidecarContainer: lattice.SidecarContainer{
			Image: "example.com/worker:1", Resources: &lattice.ResourceRequirements{Requests: &oneCPU, Limits: &oneCPU}}}}}}
	for _, edit := range edits {
		edit(&task)
	}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"worker": task}
	w.Create(job)
	return job
}

// installCRD creates the CRD of another product's kind, which remains until the test process ends.
func (w *world) installCRD(group, version, kind, plural string) {
	w.Helper()
	crd := harness.ForeignKind(group, version, kind, plural)
	if err := w.Client.Create(w.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	w.Cluster.UntilObserved(w.T, crd)
}

// setPhase waits until the VCJob of this name exists, and sets its phase as Volcano would.
func (w *world) setPhase(name string, phase volcano.JobPhase) {
	w.Helper()
	found := harness.UntilOne(w.World, &volcano.JobList{}, name, "exists", func(*volcano.Job) bool { return true })
	w.PatchStatus(found, `{"status": {"state": {"phase": "`+string(phase)+`"}}}`)
}
