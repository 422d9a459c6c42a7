// Package latticejob tests LatticeJobs, and the VCJobs that they are compiled to, on the embedded control plane with
// the operator as users run it. The pods run on simulated nodes, where the tests end them. Those of one training run as
// processes of this machine.
package latticejob

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, SimNodes: 4, SimGPUs: 8, Operator: true})
}

// world is a namespace with LatticeJobs.
type world struct{ harness.LatticeJobs }

func newWorld(t *testing.T) *world { return &world{harness.LatticeJobs{World: harness.New(t)}} }

// in returns the world in another namespace, that of an example, which it creates if it does not exist.
func (w *world) in(namespace string) *world {
	w.Helper()
	err := w.Client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	other := *w.World
	other.Namespace = namespace
	return &world{harness.LatticeJobs{World: &other}}
}

// queue creates a LocalQueue and, on the simulated nodes, a ClusterQueue of its own with that much of the resource and
// plenty of CPU and memory. It returns the ClusterQueue.
func (w *world) queue(name string, limited corev1.ResourceName, amount int64) *kueue.ClusterQueue {
	w.Helper()
	shared := w.Namespace + "-" + name
	covered := []corev1.ResourceName{limited}
	cq := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: shared},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: covered, Flavors: []kueue.FlavorQuotas{{
				Name:      kueue.ResourceFlavorReference(shared),
				Resources: []kueue.ResourceQuota{{Name: limited, NominalQuota: *resource.NewQuantity(amount, resource.DecimalSI)}},
			}}}},
		},
	}
	for _, plenty := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		cq.Spec.ResourceGroups[0].CoveredResources = append(cq.Spec.ResourceGroups[0].CoveredResources, plenty)
		cq.Spec.ResourceGroups[0].Flavors[0].Resources = append(cq.Spec.ResourceGroups[0].Flavors[0].Resources,
			kueue.ResourceQuota{Name: plenty, NominalQuota: resource.MustParse("1000Ti")})
	}
	w.Shared(
		&kueue.ResourceFlavor{
			ObjectMeta: metav1.ObjectMeta{Name: shared},
			Spec: kueue.ResourceFlavorSpec{
				NodeLabels:  map[string]string{"muster.dev/simulated": "true"},
				Tolerations: []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
			},
		},
		cq,
		&kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(shared)},
		},
	)
	return cq
}

// serve makes the API server serve a kind of another product, whose objects may have any fields.
func (w *world) serve(group, version, kind, plural string) {
	w.Helper()
	w.Shared(harness.ForeignKind(group, version, kind, plural))
}

// example creates the job of an example file, unmodified.
func (w *world) example(file string) *lattice.LatticeJob {
	w.Helper()
	text, err := os.ReadFile("../../../examples/latticejob/" + file)
	if err != nil {
		w.Fatal(err)
	}
	return w.job(string(text))
}

// job creates the LatticeJob of the manifest. It is deleted at the end of the test.
func (w *world) job(text string) *lattice.LatticeJob {
	w.Helper()
	job := &lattice.LatticeJob{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		w.Fatal(err)
	}
	if job.Namespace == "" {
		job.Namespace = w.Namespace
	}
	w.Create(job)
	w.Cleanup(func() {
		if err := client.IgnoreNotFound(w.Client.Delete(w.Context(), job)); err != nil && w.Context().Err() == nil {
			w.Error(err)
		}
	})
	return job
}

// external reads an object of another product's kind.
func (w *world) external(apiVersion, kind, name string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(w.Namespace)
	w.Get(o)
	return o
}

// end ends a pod with success once it runs, unless its simulation has ended it before.
func (w *world) end(name string) {
	w.Helper()
	var pod corev1.Pod
	w.UntilPods(name+" runs or has succeeded", func(pods map[string]corev1.Pod) bool {
		pod = pods[name]
		return pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded
	})
	if pod.Status.Phase == corev1.PodRunning {
		w.EndPod(pod, 0)
	}
}

// volume creates a PersistentVolume of the class for claims to be bound to.
func (w *world) volume(name, class, size string) {
	w.Helper()
	w.Shared(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              class,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	})
}

// claim creates a PersistentVolumeClaim that exists before the job.
func (w *world) claim(name, class, size string) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	w.Create(claim)
	return claim
}
