// Package external tests, on the embedded control plane with the operator as users run it, what becomes of LatticeJobs
// where Volcano runs what they are compiled to. The tests play Volcano. Its definition of Jobs comes after the operator
// has started; and changes of jobs that run are refused, as the configuration says.
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

// world is a namespace with LatticeJobs.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// queue makes a ClusterQueue named as the namespace with so much CPU, and the LocalQueue q.
func (w *world) queue(cpu string) {
	w.Helper()
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1000Ti")})
}

// job makes a LatticeJob of so many pods of one CPU each, in the queue, whose task is as the edits have it.
func (w *world) job(name, queue string, pods int32, edits ...func(*lattice.JobTaskSpec)) *lattice.LatticeJob {
	w.Helper()
	some := lattice.ResourceQuantity{CPU: ptr.To(resource.MustParse("1"))}
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, Spec: lattice.LatticeJobSpec{Queue: queue}}
	task := lattice.JobTaskSpec{Replicas: ptr.To(pods), Workload: lattice.WorkloadSpec{
		Containers: map[string]lattice.ContainerSpec{"main": {SidecarContainer: lattice.SidecarContainer{
			Image: "example.com/worker:1", Resources: &lattice.ResourceRequirements{Requests: &some, Limits: &some}}}}}}
	for _, edit := range edits {
		edit(&task)
	}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"worker": task}
	w.Create(job)
	return job
}

// define has the cluster serve a kind of somebody else's, whose objects have a status, until the process ends.
func (w *world) define(group, version, kind, plural string) {
	w.Helper()
	definition := harness.ForeignKind(group, version, kind, plural)
	if err := w.Client.Create(w.Context(), definition); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	w.Cluster.UntilObserved(w.T, definition)
}

// volcano has Volcano say where the VCJob stands.
func (w *world) volcano(name string, phase volcano.JobPhase) {
	w.Helper()
	found := harness.UntilOne(w.World, &volcano.JobList{}, name, "is there", func(*volcano.Job) bool { return true })
	w.PatchStatus(found, `{"status": {"state": {"phase": "`+string(phase)+`"}}}`)
}
