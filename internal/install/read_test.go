package install

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTrainingJobsAreInstalledInTheConfiguredGroup(t *testing.T) {
	definitions, err := readDefinitions("training.example.com")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := readPolicies("someone", "training.example.com")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, object := range append(definitions, policies...) {
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"breezeml.ai"`) || strings.Contains(object.GetName(), "breezeml.ai") {
			t.Errorf("%s %s still has the group breezeml.ai", object.GetKind(), object.GetName())
		}
		if group, _, _ := unstructured.NestedString(object.Object, "spec", "group"); group == "training.example.com" {
			if object.GetName() != "trainingjobs.training.example.com" {
				t.Errorf("name of the definition = %s", object.GetName())
			}
			found++
		}
		if object.GetName() == "muster-trainingjob-queue-labels" && object.GetKind() == "ValidatingAdmissionPolicy" {
			if !strings.Contains(string(text), `"apiGroups":["training.example.com"]`) {
				t.Errorf("policy = %s, want the configured group", text)
			}
			found++
		}
		if object.GetName() == "muster-workload-of-job" && object.GetKind() == "ValidatingAdmissionPolicy" {
			if !strings.Contains(string(text), "startsWith('training.example.com/')") {
				t.Errorf("policy of the Workloads = %s, want the configured group", text)
			}
			found++
		}
	}
	if found != 3 {
		t.Errorf("found %d objects, want the definition and two policies", found)
	}
}
