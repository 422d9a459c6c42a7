package chart

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

const (
	webhooks = "muster-webhooks"
	device   = corev1.ResourceName("nvidia.com/gpu")
)

// TestWebhooksOfTheChartHoldJobsAndPlacePods uses the chart's objects and rights, and the operator's certificates, on a
// cluster without the policies that would otherwise hold Jobs. Jobs must be created suspended, and pods with their
// places.
func TestWebhooksOfTheChartHoldJobsAndPlacePods(t *testing.T) {
	port, err := strconv.Atoi(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	newHelm(t).install(values{"webhook": values{"port": port},
		"config": values{"batchJob": values{"webhook": true}, "placement": values{"webhook": true}}})
	cluster := testcluster.Get(t)
	if err := cluster.Client.DeleteAllOf(t.Context(), &admissionv1.MutatingAdmissionPolicyBinding{}); err != nil {
		t.Fatal(err)
	}
	redirectService(t, cluster.Client)
	w := harness.New(t)
	// the webhook is not served yet, and the API server has observed the deletion of the policies
	w.UntilHeld(w.Job("any", "q", 1), false)
	operator.StartAs(t, "../../bin/muster-operator", cluster, account, flagsOfTheChart(t, cluster.Client)...).AwaitReady(t)

	w.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}}})
	w.Queue("q", kueue.ResourceFlavorSpec{
		NodeLabels:   map[string]string{"muster.dev/simulated": "true"},
		Tolerations:  []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
		TopologyName: ptr.To(kueue.TopologyReference(w.Namespace)),
	}, corev1.ResourceList{device: resource.MustParse("16")})
	gang := w.Job("gang", "q", 3)
	gang.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	four := corev1.ResourceList{device: resource.MustParse("4")} // a node has capacity for two of the three pods
	gang.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: four, Requests: four}
	w.UntilHeld(gang, true)
	w.Create(gang)
	if !*gang.Spec.Suspend || gang.Generation != 1 {
		t.Errorf("the Job was created with suspend %t, generation %d, want true, 1", *gang.Spec.Suspend, gang.Generation)
	}
	running := w.UntilJob("gang", "runs", harness.Running(3))
	if len(running.Spec.Template.Spec.SchedulingGates) != 1 {
		t.Fatal("the pods have their nodes from the Job's template, so that the webhook has nothing to do")
	}
	for _, pod := range w.UntilPodsOf("gang", 3) {
		if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.NodeSelector[corev1.LabelHostname] == "" || pod.Generation != 1 {
			t.Errorf("%s has gates %v, node selector %v and generation %d, want a place from its creation on", pod.Name,
				pod.Spec.SchedulingGates, pod.Spec.NodeSelector, pod.Generation)
		}
	}
}

// redirectService points the chart's Service to the operator, which runs as a process of this machine and not in a pod.
// The API server accepts it by its certificate, which has the Service's name.
func redirectService(t *testing.T, c client.Client) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lattice-operator-webhook"}}
	const toLocalhost = `{"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}}`
	if err := c.Patch(t.Context(), service,
		client.RawPatch("application/merge-patch+json", []byte(toLocalhost))); err != nil {
		t.Fatal(err)
	}
}

// flagsOfTheChart returns the operator's flags in the chart's Deployment, without the addresses, and with the
// configuration in a local file.
func flagsOfTheChart(t *testing.T, c client.Client) []string {
	t.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: "lattice-operator"}
	var deployment appsv1.Deployment
	var config corev1.ConfigMap
	for _, o := range []client.Object{&deployment, &config} {
		if err := c.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config.Data["config.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := slices.DeleteFunc(deployment.Spec.Template.Spec.Containers[0].Args, func(flag string) bool {
		return strings.Contains(flag, "-address=") || strings.HasPrefix(flag, "--config=")
	})
	return append(flags, "--config="+file)
}

// TestUpgradeKeepsTheCABundleOfTheWebhooks checks that an upgrade does not remove the CA bundle, which the operator has
// written: the webhooks would fail open until the operator writes it again.
func TestUpgradeKeepsTheCABundleOfTheWebhooks(t *testing.T) {
	h := newHelm(t)
	with := values{"config": values{"batchJob": values{"webhook": true}}}
	h.install(with)
	c := testcluster.Get(t).Client
	object := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks}}
	operator.StartAs(t, "../../bin/muster-operator", testcluster.Get(t), account,
		append(flagsOfTheChart(t, c), "--webhook-port="+freePort(t))...)
	before := untilCABundle(t, c, object)
	h.upgrade(values{"config": with["config"], "replicaCount": 3})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if string(object.Webhooks[0].ClientConfig.CABundle) != before {
		t.Error("the upgrade changed the CA bundle of the webhooks")
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(operator.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// untilCABundle waits until the operator has written the CA bundle, and returns it.
func untilCABundle(t *testing.T, c client.Client, object *admissionv1.MutatingWebhookConfiguration) (bundle string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, harness.Patience,
		true, func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return false, err
			}
			bundle = string(object.Webhooks[0].ClientConfig.CABundle)
			return bundle != "", nil
		})
	if err != nil {
		t.Fatalf("waiting until %s has a CA bundle: %v", object.Name, err)
	}
	return bundle
}

// TestWebhooksAreInstalledOnRequest checks that the chart has no webhooks by default, and those that the configuration
// enables otherwise, with their Service and rights. They fail open, and are limited to monitorNamespace if it is set.
func TestWebhooksAreInstalledOnRequest(t *testing.T) {
	for what, test := range map[string]struct {
		with values
		want []string
	}{
		"defaults": {values{}, nil},
		"Jobs":     {values{"config": values{"batchJob": values{"webhook": true}}}, []string{"job-hold.muster.dev"}},
		"pods":     {values{"config": values{"placement": values{"webhook": true}}}, []string{"pod-places.muster.dev"}},
		"both in one namespace": {values{"monitorNamespace": "ml",
			"config": values{"batchJob": values{"webhook": true}, "placement": values{"webhook": true}}},
			[]string{"job-hold.muster.dev", "pod-places.muster.dev"}},
	} {
		t.Run(what, func(t *testing.T) {
			text, err := render(t, tested, test.with)
			if err != nil {
				t.Fatal(err)
			}
			objects := decode(t, text)
			var got []string
			if o := find(t, objects, "MutatingWebhookConfiguration", webhooks); o != nil {
				list, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
				for _, item := range list {
					hook := item.(map[string]any)
					got = append(got, hook["name"].(string))
					in, _, _ := unstructured.NestedString(hook, "namespaceSelector", "matchLabels", corev1.LabelMetadataName)
					if one, _ := test.with["monitorNamespace"].(string); hook["failurePolicy"] != "Ignore" || in != one {
						t.Errorf("%s has failurePolicy %v and namespace %q, want Ignore and %q", hook["name"],
							hook["failurePolicy"], in, one)
					}
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("webhooks = %v, want %v", got, test.want)
			}
			for _, kind := range []string{"Service", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
				if exists := find(t, objects, kind, "lattice-operator-webhook") != nil; exists != (test.want != nil) {
					t.Errorf("a %s for webhooks exists = %t, want %t", kind, exists, test.want != nil)
				}
			}
		})
	}
}
