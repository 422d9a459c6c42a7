// Package rules_test tells whether the oldest Kubernetes that the chart installs on takes the definitions and policies.
package rules_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	policyinstall "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

// It is in another module: Go takes what passed for passed though the chart has changed, but with -count=1, as make test has it.
const chart = "../../../charts/muster"

// An API server takes new expressions only if the one before it would, to which the cluster may go back: 1.30 knows what
// 1.29 knew, and no more.
var understood = version.MajorMinor(1, 29)

// codecs reads manifests as the API server does, defaults included.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	crdinstall.Install(scheme)
	policyinstall.Install(scheme)
	return serializer.NewCodecFactory(scheme)
}()

func TestMain(m *testing.M) {
	kube := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	kube.(basecompatibility.MutableEffectiveVersion).SetMinCompatibilityVersion(understood)
	os.Exit(m.Run())
}

// The validation of the API server compiles every rule and weighs it, alone and with all others of its definition.
func TestTheOldestKubernetesTakesEveryDefinition(t *testing.T) {
	each(t, "apis", func(t *testing.T, object runtime.Object) field.ErrorList {
		definition, is := object.(*apiextensions.CustomResourceDefinition)
		if !is {
			t.Fatalf("%T is no definition", object)
		}
		// What the API server fills in when it takes a definition.
		definition.Status.StoredVersions = nil
		for _, v := range definition.Spec.Versions {
			if v.Storage {
				definition.Status.StoredVersions = []string{v.Name}
			}
		}
		return crdvalidation.ValidateCustomResourceDefinition(context.Background(), definition)
	})
}

func TestTheOldestKubernetesTakesEveryPolicy(t *testing.T) {
	each(t, "policies", func(t *testing.T, object runtime.Object) field.ErrorList {
		switch object := object.(type) {
		case *admissionregistration.ValidatingAdmissionPolicy:
			return policyvalidation.ValidateValidatingAdmissionPolicy(object)
		case *admissionregistration.ValidatingAdmissionPolicyBinding:
			return policyvalidation.ValidateValidatingAdmissionPolicyBinding(object)
		// The oldest Kubernetes has none, and the chart leaves them out there. Those that have them know more.
		case *admissionregistration.MutatingAdmissionPolicy:
			return policyvalidation.ValidateMutatingAdmissionPolicy(object)
		case *admissionregistration.MutatingAdmissionPolicyBinding:
			return policyvalidation.ValidateMutatingAdmissionPolicyBinding(object)
		default:
			t.Fatalf("%T is no policy", object)
			return nil
		}
	})
}

// A definition or a policy with what came later is refused here, or the tests above say nothing.
func TestWhatCameLaterIsRefused(t *testing.T) {
	if got := environment.DefaultCompatibilityVersion(); !got.EqualTo(understood) {
		t.Fatalf("expressions are held against Kubernetes %s, not %s", got, understood)
	}
	for _, later := range []string{
		"[[1], [2]].flatten().size() == 2",
		"[1, 2].all(i, x, i < x)",
		"!format.dns1123Label().validate('a').hasValue()",
	} {
		policy := &admissionregistration.ValidatingAdmissionPolicy{Spec: admissionregistration.ValidatingAdmissionPolicySpec{
			Validations: []admissionregistration.Validation{{Expression: later}},
		}}
		errs := policyvalidation.ValidateValidatingAdmissionPolicy(policy).ToAggregate()
		if errs == nil || !strings.Contains(errs.Error(), "compilation failed") {
			t.Errorf("%s: %v", later, errs)
		}
	}
}

// each validates all objects of a directory of the chart.
func each(t *testing.T, directory string, validate func(*testing.T, runtime.Object) field.ErrorList) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chart, directory, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", directory, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, document := range strings.Split(string(data), "\n---\n") {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(path), i), func(t *testing.T) {
				object, _, err := codecs.UniversalDecoder(apiextensions.SchemeGroupVersion, internal).Decode([]byte(document), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range validate(t, object) {
					t.Error(err)
				}
			})
		}
	}
}

// internal is the form of policies that is validated.
var internal = admissionregistration.SchemeGroupVersion
