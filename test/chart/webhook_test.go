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

// TestWebhooksOfTheChartHoldJobsAndPlacePods: with the chart's own objects and rights, and the certificates that the
// operator makes, on a cluster that serves no policies which would hold Jobs.
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
	leadHere(t, cluster.Client)
	w := harness.New(t)
	w.UntilHeld(w.Job("any", "q", 1), false) // nobody answers the webhook yet, and the API server has heard that there are no policies
	operator.StartAs(t, "../../bin/muster-operator", cluster, account, flagsOfTheChart(t, cluster.Client)...).AwaitReady(t)

	w.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}}})
	w.Queue("q", kueue.ResourceFlavorSpec{
		NodeLabels:   map[string]string{"muster.dev/simulated": "true"},
		Tolerations:  []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
		TopologyName: ptr.To(kueue.TopologyReference(w.Namespace)),
	}, corev1.ResourceList{device: resource.MustParse("16")})
	gang := w.Job("gang", "q", 3)
	gang.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	four := corev1.ResourceList{device: resource.MustParse("4")} // two of three fit a node
	gang.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: four, Requests: four}
	w.UntilHeld(gang, true)
	w.Create(gang)
	if !*gang.Spec.Suspend || gang.Generation != 1 {
		t.Errorf("it was made with suspend %t, generation %d", *gang.Spec.Suspend, gang.Generation)
	}
	made := w.UntilJob("gang", "runs", harness.Running(3))
	if len(made.Spec.Template.Spec.SchedulingGates) != 1 {
		t.Fatal("its pods have their places from its template: nobody is asked for them")
	}
	for _, pod := range w.UntilPodsOf("gang", 3) {
		if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.NodeSelector[corev1.LabelHostname] == "" || pod.Generation != 1 {
			t.Errorf("%s was made without its place: gates %v, selects %v, generation %d", pod.Name, pod.Spec.SchedulingGates, pod.Spec.NodeSelector, pod.Generation)
		}
	}
}

// leadHere has the chart's Service lead to the operator where it runs: it is a process of this machine, and no pod. The
// API server takes for the Service who shows the certificate of its name.
func leadHere(t *testing.T, c client.Client) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lattice-operator-webhook"}}
	const here = `{"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}}`
	if err := c.Patch(t.Context(), service, client.RawPatch("application/merge-patch+json", []byte(here))); err != nil {
		t.Fatal(err)
	}
}

// flagsOfTheChart are those of the operator in the chart's Deployment, with its configuration as a file, but for
// addresses in a pod.
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

// TestAnUpgradeKeepsTheCABundleOfTheWebhooks: else it would do without the webhooks until an operator has written it
// again.
func TestAnUpgradeKeepsTheCABundleOfTheWebhooks(t *testing.T) {
	h := newHelm(t)
	with := values{"config": values{"batchJob": values{"webhook": true}}}
	h.install(with)
	c := testcluster.Get(t).Client
	object := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks}}
	operator.StartAs(t, "../../bin/muster-operator", testcluster.Get(t), account, append(flagsOfTheChart(t, c), "--webhook-port="+freePort(t))...)
	trusted := untilTrusted(t, c, object)
	h.upgrade(values{"config": with["config"], "replicaCount": 3})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if string(object.Webhooks[0].ClientConfig.CABundle) != trusted {
		t.Error("after an upgrade the API server trusts somebody else")
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

// untilTrusted waits until the object says whom the API server is to trust.
func untilTrusted(t *testing.T, c client.Client, object *admissionv1.MutatingWebhookConfiguration) (trusted string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, harness.Patience, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		trusted = string(object.Webhooks[0].ClientConfig.CABundle)
		return trusted != "", nil
	})
	if err != nil {
		t.Fatalf("waiting until %s says whom to trust: %v", object.Name, err)
	}
	return trusted
}

// TestWebhooksAreInstalledOnRequest: none by default, and then those that the configuration turns on, which fail open,
// reach the operator's pods, and are asked about the one namespace alone whose jobs are run.
func TestWebhooksAreInstalledOnRequest(t *testing.T) {
	for what, test := range map[string]struct {
		with values
		want []string
	}{
		"the defaults": {values{}, nil},
		"Jobs":         {values{"config": values{"batchJob": values{"webhook": true}}}, []string{"job-hold.muster.dev"}},
		"pods":         {values{"config": values{"placement": values{"webhook": true}}}, []string{"pod-places.muster.dev"}},
		"both in one namespace": {values{"monitorNamespace": "ml", "config": values{"batchJob": values{"webhook": true}, "placement": values{"webhook": true}}},
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
						t.Errorf("%s has failurePolicy %v, and is for namespace %q", hook["name"], hook["failurePolicy"], in)
					}
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("there are %v, want %v", got, test.want)
			}
			for _, kind := range []string{"Service", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
				if is := find(t, objects, kind, "lattice-operator-webhook") != nil; is != (test.want != nil) {
					t.Errorf("there is a %s for webhooks: %t", kind, is)
				}
			}
		})
	}
}
