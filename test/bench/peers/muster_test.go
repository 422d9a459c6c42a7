//go:build peers

package peers

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	queue     = "peers"
	rackLabel = "muster.dev/rack"
)

// newMuster starts a cluster with Muster and a ClusterQueue over all simulated nodes, whose pods are placed on nodes.
func newMuster(t *testing.T) *contender {
	t.Helper()
	var arguments []string
	if *config != "" {
		arguments = append(arguments, "--config", *config)
	}
	c := start(t, "Muster", arguments...)
	c.processes = append(c.processes, figure.ProcessOf(t, filepath.Join(c.cluster.Dir, "operator.pid")))
	gpu := corev1.ResourceName("nvidia.com/gpu")
	for _, o := range []client.Object{
		&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: queue},
			Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rackLabel}, {NodeLabel: corev1.LabelHostname}}}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{simulated: "true"}, TopologyName: ptr.To(kueue.TopologyReference(queue))}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{
				Name: queue, Resources: []kueue.ResourceQuota{{Name: gpu,
					NominalQuota: *resource.NewQuantity(nodes*gpusOfNode, resource.DecimalSI)}}}}}},
		}},
	} {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c.adapt = func(job *volcano.Job) { job.Spec.Queue = queue }
	c.prepare = func(t *testing.T, namespace string) {
		t.Helper()
		local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queue},
			Spec: kueue.LocalQueueSpec{ClusterQueue: queue}}
		if err := c.client.Create(t.Context(), local); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
