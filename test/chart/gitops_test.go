package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRenderingIsDeterministic: who keeps a cluster at what a repository says has nothing to change when nothing was
// changed.
func TestRenderingIsDeterministic(t *testing.T) {
	for what, with := range combinations {
		first, err := render(t, tested, with, mutates)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if again, err := render(t, tested, with, mutates); err != nil || again != first {
			t.Errorf("%s: it is another each time (%v)", what, err)
		}
		for _, object := range decode(t, first) {
			for key := range object.GetAnnotations() {
				if strings.HasPrefix(key, "helm.sh/hook") {
					t.Errorf("%s: %s %s is a hook, which others than Helm do not run", what, object.GetKind(), object.GetName())
				}
			}
			switch object.GetKind() {
			case "Secret":
				if object.GetName() == "muster-rendezvous" || object.GetName() == "muster-webhook" {
					t.Errorf("%s: the Secret %s is the operator's to write", what, object.GetName())
				}
			case "MutatingWebhookConfiguration":
				hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
				for _, hook := range hooks {
					if _, said, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "caBundle"); said {
						t.Errorf("%s: whom the API server is to trust is the operator's to write", what)
					}
				}
			}
		}
	}
}

// TestWithoutAClusterVolcanoIsLeftAloneByValue: who renders the chart elsewhere, as Argo CD does, does not see that it
// is there.
func TestWithoutAClusterVolcanoIsLeftAloneByValue(t *testing.T) {
	count := func(with values) (n int) {
		text, err := render(t, tested, with, mutates)
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
		t.Errorf("%d objects would be applied over Volcano's", n)
	}
	if count(nil) == 0 {
		t.Error("Muster's own are missing without it")
	}
}
