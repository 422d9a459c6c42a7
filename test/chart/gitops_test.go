package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRenderingIsDeterministic checks what GitOps tools need: the same values render the same objects, none is a Helm
// hook, and the manifest has nothing that the operator writes itself.
func TestRenderingIsDeterministic(t *testing.T) {
	for what, with := range combinations {
		first, err := render(t, tested, with, mutatingPolicies)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if second, err := render(t, tested, with, mutatingPolicies); err != nil || second != first {
			t.Errorf("%s: the chart renders differently each time (%v)", what, err)
		}
		for _, object := range decode(t, first) {
			for key := range object.GetAnnotations() {
				if strings.HasPrefix(key, "helm.sh/hook") {
					t.Errorf("%s: %s %s is a hook, which only Helm runs", what, object.GetKind(), object.GetName())
				}
			}
			switch object.GetKind() {
			case "Secret":
				if object.GetName() == "muster-rendezvous" || object.GetName() == "muster-webhook" {
					t.Errorf("%s: the manifest has the Secret %s, which the operator writes", what, object.GetName())
				}
			case "MutatingWebhookConfiguration":
				hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
				for _, hook := range hooks {
					if _, found, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "caBundle"); found {
						t.Errorf("%s: the manifest has the CA bundle of a webhook, which the operator writes", what)
					}
				}
			}
		}
	}
}

// TestWithoutAClusterVolcanoIsLeftAloneByValue checks `volcano: external`: where the chart is rendered without a
// cluster, as by Argo CD, it cannot detect Volcano.
func TestWithoutAClusterVolcanoIsLeftAloneByValue(t *testing.T) {
	count := func(with values) (n int) {
		text, err := render(t, tested, with, mutatingPolicies)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, text) {
			if strings.HasSuffix(object.GetName(), ".volcano.sh") || strings.HasPrefix(object.GetName(), "muster-vcjob") {
				n++
			}
		}
		return n
	}
	if n := count(values{"config": values{"volcano": "external"}}); n != 0 {
		t.Errorf("with volcano: external, %d objects of Volcano's API were rendered, want 0", n)
	}
	if count(nil) == 0 {
		t.Error("by default, no objects of Volcano's API were rendered")
	}
}
